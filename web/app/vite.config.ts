import { createHash } from "node:crypto";
import fs from "node:fs";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { type Plugin, defineConfig, runnerImport } from "vite";

// Puts what needs no data into the built index.html: the frame of all pages, and the file that chooses the colours. A
// browser then paints the frame as soon as it has the style sheet, and reads the scripts after that. Until they run,
// the frame takes no clicks.
function firstPaint(): Plugin {
  const source = fs.readFileSync(new URL("src/theme.js", import.meta.url), "utf8");
  const theme = `assets/theme-${createHash("sha256").update(source).digest("base64url").slice(0, 8)}.js`;
  return {
    name: "first-paint",
    apply: "build",
    buildStart() {
      this.emitFile({ type: "asset", fileName: theme, source });
    },
    transformIndexHtml: {
      order: "post",
      handler: async (html) => {
        const { Shell } = (await runnerImport<typeof import("./src/shell")>("./src/shell.tsx")).module;
        // The style sheet is asked for before the scripts: a browser opens six connections, and the paint waits for it.
        const style = /\n *<link rel="stylesheet"[^>]*>/.exec(html)?.[0] ?? "";
        const frame = renderToStaticMarkup(createElement(Shell, { inert: true })).replace(/^<link[^>]*>/, ""); // a preload of the icon, which the head names
        return html.replace(style, "").replace("<title>", () => `<script src="/${theme}"></script>${style}\n    <title>`).replace("<!--shell-->", () => frame);
      },
    },
  };
}

// The built files are committed and embedded into the binary: their names hold a
// hash of what is in them, so that they can be kept by browsers for ever.
export default defineConfig({
  plugins: [react(), tailwindcss(), firstPaint()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the page's policy allows no data: but images
  },
  server: { proxy: { "/api": "http://127.0.0.1:8420" } },
});
