package testserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// bombSize is the size of a bomb in bytes.
const bombSize = 2 << 30

// bombs returns faults that exceed any memory. They are not included in [Faults], because each takes seconds.
func bombs() []fault {
	var pages int
	return []fault{
		{name: "bomb-answer", says: "an answer of 2 GB", reply: func(w wire, a *right) {
			flood(w, `{"jsonrpc":"2.0","id":`+string(a.id)+`,"result":{"x":"`, "a", bombSize, `"}}`)
		}},
		{name: "bomb-tools", says: "a million tools on a page", reply: func(w wire, a *right) {
			const tool = `{"name":"t","inputSchema":{"type":"object"}},`
			flood(w, `{"jsonrpc":"2.0","id":`+string(a.id)+`,"result":{"tools":[`, tool, 1_000_000*len(tool),
				`{"name":"u"}]}}`)
		}},
		{name: "bomb-deep", says: "JSON of a million levels", reply: func(w wire, a *right) {
			flood(w, `{"jsonrpc":"2.0","id":`+string(a.id)+`,"result":{"x":`, "[", 1_000_000,
				strings.Repeat("]", 1_000_000)+`}}`)
		}},
		{name: "bomb-event", says: "an event of 2 GB", on: []string{"http"}, reply: func(w wire, _ *right) {
			h := w.(*webWire)
			h.w.Header().Set("Content-Type", "text/event-stream")
			h.begun = true
			flood(h, "data: ", "a", bombSize, "\n\n")
		}},
		web("bomb-gzip", "2 GB in 2 MB", func(w http.ResponseWriter, _ *http.Request, a *right) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			var blank bytes.Buffer
			z := gzip.NewWriter(&blank)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
			_ = z.Close()
			for range bombSize / (64 << 20) { // concatenated gzip members
				if _, err := w.Write(blank.Bytes()); err != nil {
					return
				}
			}
		}),
		web("bomb-headers", "2 GB of headers", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			line := []byte("X-Noise: " + strings.Repeat("n", 1<<20) + "\r\n")
			for n := 0; n < bombSize && err == nil; n += len(line) {
				_, err = c.Write(line)
			}
		}),
		only("tools/list", one("bomb-pages", "a thousand tools on each page, for ever", func(a *right) []byte {
			pages++
			b := []byte(`{"tools":[`)
			for i := range 1000 {
				b = fmt.Appendf(b, `{"name":"t%d_%d","description":"%s","inputSchema":{"type":"object"}},`, pages, i,
					strings.Repeat("d", 1000))
			}
			return a.with(fmt.Sprintf(`%s],"nextCursor":"p%d"}`, b[:len(b)-1], pages))
		})),
		only("tools/list", one("bomb-cursor", "always another cursor, of 1 MB", func(a *right) []byte {
			pages++
			return a.with(fmt.Sprintf(`{"tools":[],"nextCursor":"%d%s"}`, pages, strings.Repeat("c", 1<<20)))
		})),
		storm("bomb-notices", "10,000,000 notices of progress before the answer", 10_000_000, "progress",
			`{"progressToken":"1","progress":1}`),
		storm("bomb-changed", "10,000,000 times that the tools have changed", 10_000_000, "tools/list_changed", `{}`),
		storm("bomb-logs", "2 GB of log messages", bombSize>>20, "message", `{"level":"error","data":"`+
			strings.Repeat("l", 1<<20)+`"}`),
		process("bomb-stderr", "a line of 2 GB on stderr", func(s *server) {
			go func() {
				b := bytes.Repeat([]byte("e"), 1<<20)
				for range bombSize >> 20 {
					if _, err := s.stderr.Write(b); err != nil {
						return
					}
				}
			}()
		}),
	}
}

// storm sends a notification many times before the response.
func storm(name, says string, n int, method, params string) fault {
	return fault{name: name, says: says, on: withNotices, reply: func(w wire, a *right) {
		notice := []byte(`{"jsonrpc":"2.0","method":"notifications/` + method + `","params":` + params + `}`)
		for range n {
			if a.ctx != nil && a.ctx.Err() != nil {
				return
			}
			w.message(notice)
		}
		w.message(a.answer)
	}}
}

// flood sends one message that is generated while it is sent: about n bytes of fill between head and tail.
func flood(w wire, head, fill string, n int, tail string) {
	chunk := []byte(strings.Repeat(fill, max(1, (1<<20)/len(fill))))
	var write func([]byte)
	end := func(b []byte) { write(b) }
	switch w := w.(type) {
	case *socket:
		op := byte(1)
		write = func(b []byte) { w.frame(false, op, b); op = 0 }
		end = func(b []byte) { w.frame(true, op, b) }
	case *eventWire:
		head, write = "event: message\ndata: "+head, w.raw
		tail += "\n\n"
	case *pipeWire:
		write = w.raw
		tail += "\n"
	default:
		write = w.raw
	}
	write([]byte(head))
	for ; n > 0; n -= len(chunk) {
		write(chunk[:min(n, len(chunk))])
	}
	end([]byte(tail))
}
