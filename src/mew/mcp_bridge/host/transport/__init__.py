"""How hosts reach us: stdio or Streamable HTTP."""
