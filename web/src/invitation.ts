/** PURE. The link that lets somebody in: where it leads, and for whom that is within reach. */

/** The address of this page with the code of a link behind the `#`, which browsers send to nobody. */
export function linkAddress(page: string, code: string): string {
  const address = new URL(page);
  address.search = "";
  address.hash = `link=${code}`;
  return address.href;
}

/** Whether an address leads to this machine and no other. */
export function isHereOnly(address: string): boolean {
  const { hostname } = new URL(address);
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}
