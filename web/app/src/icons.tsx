// The icons of the pages: lines on a grid of 24, in the colour of the text beside them.

const shapes = {
  chat: "M4 5h16v11H9l-5 4z",
  runs: "M4 6h10M4 12h16M4 18h7M18 4v4M15 16v4",
  approvals: "M12 3l8 3v6c0 4.5-3.2 7.6-8 9-4.8-1.4-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5",
  servers: "M4 4h16v7H4zM4 13h16v7H4zM7.5 7.5h.01M7.5 16.5h.01",
  tools: "M14 6a4 4 0 0 1 5-3l-2.5 3 1.5 2 3-1.5a4 4 0 0 1-5.5 4.5L8 18.5A2.1 2.1 0 0 1 5 15.5l7.5-7.5A4 4 0 0 1 14 6z",
  prompts: "M5 4h14v13H9l-4 4zM9 9h6M9 12.5h4",
  resources: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  workflows: "M4 4h6v5H4zM14 15h6v5h-6zM7 9v8.5h7M17 15V6.5h-7",
  tables: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 5v14",
  clients: "M12 12.5V4M8.5 7.5L12 4l3.5 3.5M4 13v7h16v-7M8 16.5h8",
  stats: "M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6",
  doctor: "M3 12h4l2.5-6 4 12 2.5-6h5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
} as const;

export type IconName = keyof typeof shapes;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg aria-hidden viewBox="0 0 24 24" className="size-4.5 shrink-0" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round">
      <path d={shapes[name]} />
    </svg>
  );
}
