// An OAuth authorization server and the MCP server (Streamable HTTP) that it protects,
// as far as a sign-in needs them: registration, a page to agree on, PKCE, tokens.

import crypto from "node:crypto";
import http from "node:http";
import type net from "node:net";

export interface Provider {
  url: string; // of the MCP server
  close: () => void;
}

export async function provide(): Promise<Provider> {
  const codes = new Map<string, { challenge: string; redirect: string }>();
  const tokens = new Set<string>();
  let base = "";
  const server = http.createServer(async (req, res) => {
    const url = new URL(req.url!, base);
    const body = Buffer.concat(await req.toArray()).toString();
    const json = (status: number, value: unknown, more: http.OutgoingHttpHeaders = {}) => res.writeHead(status, { "Content-Type": "application/json", ...more }).end(value === undefined ? "" : JSON.stringify(value));
    switch (url.pathname) {
      case "/.well-known/oauth-protected-resource/mcp":
        return json(200, { resource: `${base}/mcp`, authorization_servers: [base] });
      case "/.well-known/oauth-authorization-server":
        return json(200, { issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, registration_endpoint: `${base}/register`, response_types_supported: ["code"], code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"] });
      case "/register":
        return json(201, { ...(JSON.parse(body) as object), client_id: "workbench", token_endpoint_auth_method: "none" });
      case "/authorize": {
        const code = crypto.randomUUID();
        codes.set(code, { challenge: url.searchParams.get("code_challenge")!, redirect: url.searchParams.get("redirect_uri")! });
        const back = new URL(url.searchParams.get("redirect_uri")!);
        back.searchParams.set("code", code);
        back.searchParams.set("state", url.searchParams.get("state")!);
        back.searchParams.set("iss", base);
        return res.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><title>Provider</title><h1>May tenon read your things?</h1><a href="${back.href.replaceAll("&", "&amp;")}">Agree</a>`);
      }
      case "/token": {
        const form = new URLSearchParams(body);
        const kept = codes.get(form.get("code") ?? "");
        codes.delete(form.get("code") ?? "");
        const challenge = crypto.createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
        if (form.get("grant_type") !== "authorization_code" || !kept || kept.challenge !== challenge || kept.redirect !== form.get("redirect_uri")) return json(400, { error: "invalid_grant" });
        const token = crypto.randomUUID();
        tokens.add(token);
        return json(200, { access_token: token, token_type: "Bearer", expires_in: 3600 });
      }
      case "/mcp": {
        if (!tokens.has(req.headers.authorization?.replace("Bearer ", "") ?? "")) return json(401, { error: "unauthorized" }, { "WWW-Authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` });
        if (req.method !== "POST") return json(405, undefined);
        const m = JSON.parse(body) as { id?: number | string; method: string };
        if (m.id === undefined) return json(202, undefined);
        const results: Record<string, unknown> = {
          initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "protected", version: "1" } },
          "tools/list": { tools: [{ name: "secret_tool", description: "Only for those who signed in", inputSchema: { type: "object" } }] },
          ping: {},
        };
        return json(200, { jsonrpc: "2.0", id: m.id, ...(results[m.method] ? { result: results[m.method] } : { error: { code: -32601, message: "no such method" } }) });
      }
    }
    return json(404, { error: "not found" });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  base = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  return { url: `${base}/mcp`, close: () => server.close() };
}
