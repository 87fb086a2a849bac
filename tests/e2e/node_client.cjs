// A WebSocket client in Node for the tests: sends the frames that stdin names, and prints each that it receives.
// A line of stdin is {"text": TEXT}, {"json": VALUE} or {"base64": BYTES}; one of stdout {"text": …} or {"base64": …}.
const readline = require("node:readline");
const WebSocket = require("ws");

const [url, token] = process.argv.slice(2);
const socket = new WebSocket(url, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

socket.on("message", (data, isBinary) =>
  print(isBinary ? { base64: data.toString("base64") } : { text: data.toString() }),
);
socket.on("close", (code) => {
  print({ closed: code });
  process.exit(0);
});
socket.on("error", (error) => print({ error: error.message }));
socket.on("open", () => {
  print({ open: true });
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const { text, json, base64 } = JSON.parse(line);
    if (base64 !== undefined) socket.send(Buffer.from(base64, "base64"));
    else socket.send(text === undefined ? JSON.stringify(json) : text);
  });
  lines.on("close", () => socket.close());
});
