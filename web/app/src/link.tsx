// Links to the web, from texts of models and servers.

/** An address that a page may link to, or nothing. */
export function webAddress(href: string): URL | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null; // not an absolute address
  }
}

/** A link to where it says, if that is the web; else its text. */
export function Link({ href, text, label }: { href: string; text: string; label?: string }) {
  const url = webAddress(href);
  if (!url) return <>{text}</>;
  return <a href={url.href} target="_blank" rel="noopener noreferrer nofollow" title={url.href} aria-label={label}>{text}</a>;
}
