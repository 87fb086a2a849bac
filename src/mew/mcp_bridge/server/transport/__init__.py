"""How a server is reached: a process of ours over stdio, or Streamable HTTP."""
