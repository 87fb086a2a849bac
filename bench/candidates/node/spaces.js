// Who is in which space, by the address that a client asked for.
const spaces = new Map();

export function joining(socket, request) {
  const name = new URL(request.url, "ws://bench").searchParams.get("space");
  if (!spaces.has(name)) spaces.set(name, new Set());
  const clients = spaces.get(name);
  clients.add(socket);
  socket.on("close", () => clients.delete(socket));
  socket.on("error", () => clients.delete(socket));
  return clients;
}
