import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { takeToken } from "./api";
import { App, loadPage } from "./app";
import { cache, readEarly } from "./data";
import "./main.css";

takeToken();
loadPage();
readEarly();
window.addEventListener("hashchange", () => {
  takeToken();
  void cache.invalidateQueries();
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
