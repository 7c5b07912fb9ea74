// ICE servers out of a Link header (RFC 8288; WHIP, RFC 9725 section 4.6). No DOM.

const PARAMETER = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?\s*/;

export function readIceServers(header) {
  const servers = [];
  for (const { target, parameters } of readLinks(header ?? "")) {
    if (parameters.get("rel") !== "ice-server" || !/^(stun|stuns|turn|turns):/.test(target)) continue;
    const server = { urls: target };
    if (parameters.has("username")) {
      server.username = parameters.get("username");
      server.credential = parameters.get("credential") ?? "";
    }
    servers.push(server);
  }
  return servers;
}

// Links in order; reading ends where the header is malformed.
function readLinks(header) {
  const links = [];
  let rest = header;
  while (true) {
    const start = /^[\s,]*<([^>]*)>\s*/.exec(rest);
    if (start === null) return links;
    rest = rest.slice(start[0].length);
    const parameters = new Map();
    while (rest.startsWith(";")) {
      const found = PARAMETER.exec(rest.slice(1));
      if (found === null) return links;
      const [whole, name, quoted, token] = found;
      parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, "$1") ?? token ?? "");
      rest = rest.slice(1 + whole.length);
    }
    links.push({ target: start[1], parameters });
    if (!rest.startsWith(",")) return links;
  }
}
