// A plain Node `ws` server, the way of the TypeScript implementation: each envelope is parsed once, then
// stringified and sent again for every client in the space, its sender included.
import { WebSocket, WebSocketServer } from "ws";

const port = Number(process.argv[2]);
const spaces = new Map();

const server = new WebSocketServer({ host: "127.0.0.1", port });

server.on("connection", (socket, request) => {
  const name = new URL(request.url, "ws://bench").searchParams.get("space");
  if (!spaces.has(name)) spaces.set(name, new Set());
  const clients = spaces.get(name);
  clients.add(socket);

  socket.on("message", (data) => {
    const envelope = JSON.parse(data.toString());
    for (const client of clients) {
      if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify(envelope));
    }
  });
  socket.on("close", () => clients.delete(socket));
  socket.on("error", () => clients.delete(socket));
});
