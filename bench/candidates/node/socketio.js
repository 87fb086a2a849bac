// Socket.IO: a room for each space, and each event emitted again to the room, its sender included. Socket.IO
// builds the frame of a broadcast once. WebSocket only, and no ping within a run: the load counts every byte.
import { Server } from "socket.io";

const HOUR_MS = 3_600_000;

const io = new Server({ transports: ["websocket"], pingInterval: HOUR_MS, pingTimeout: HOUR_MS, serveClient: false });

io.on("connection", (socket) => {
  const { space } = socket.handshake.query;
  socket.join(space);
  socket.on("e", (envelope) => io.to(space).emit("e", envelope));
});

io.listen(Number(process.argv[2]), { host: "127.0.0.1" });
