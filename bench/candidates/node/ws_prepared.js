// The same with the work done once: each envelope is parsed and stringified once, its frame is built once by
// `ws` itself (Sender.frame), and that frame is written to every client. Socket.IO sends frames in this way too.
import { Sender, WebSocket, WebSocketServer } from "ws";
import { joining } from "./spaces.js";

const TEXT = { fin: true, rsv1: false, opcode: 1, mask: false, readOnly: false };

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]) });

server.on("connection", (socket, request) => {
  const clients = joining(socket, request);
  socket.on("message", (data) => {
    const envelope = JSON.parse(data.toString());
    const frame = Buffer.concat(Sender.frame(Buffer.from(JSON.stringify(envelope)), { ...TEXT }));
    for (const client of clients) {
      if (client.readyState === WebSocket.OPEN) client._sender.sendFrame([frame]);
    }
  });
});
