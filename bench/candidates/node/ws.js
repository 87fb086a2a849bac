// A plain Node `ws` server, the way of the TypeScript implementation: each envelope is parsed once, then
// stringified and sent again for every client in the space, its sender included.
import { WebSocket, WebSocketServer } from "ws";
import { joining } from "./spaces.js";

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]) });

server.on("connection", (socket, request) => {
  const clients = joining(socket, request);
  socket.on("message", (data) => {
    const envelope = JSON.parse(data.toString());
    for (const client of clients) {
      if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify(envelope));
    }
  });
});
