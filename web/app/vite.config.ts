import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The built files are committed and embedded into the binary: their names hold a
// hash of what is in them, so that they can be kept by browsers for ever.
export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the page's policy allows no data: but images
  },
  server: { proxy: { "/api": "http://127.0.0.1:8420" } },
});
