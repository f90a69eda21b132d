package testserver

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// get returns a fault of the event stream of HTTP+SSE. It occurs when the stream is opened.
func get(name, says string, f func(w http.ResponseWriter, r *http.Request)) fault {
	return fault{name: name, says: says, on: []string{"sse"}, start: func(s *server) { s.get = f }}
}

// posted returns a fault of the response to a POST of HTTP+SSE.
func posted(name, says string, f func(w http.ResponseWriter, r *http.Request)) fault {
	return fault{name: name, says: says, on: []string{"sse"}, start: func(s *server) { s.post = f }}
}

func sseFaults() []fault {
	stream := func(w http.ResponseWriter, s string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, s)
		_ = http.NewResponseController(w).Flush()
	}
	hold := func(r *http.Request) { <-r.Context().Done() }
	answer := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	return []fault{
		get("endpoint-none", "an event stream that names no endpoint",
			func(w http.ResponseWriter, r *http.Request) { stream(w, ": hi\n\n"); hold(r) }),
		get("endpoint-empty", "an empty endpoint",
			func(w http.ResponseWriter, r *http.Request) { stream(w, "event: endpoint\ndata:\n\n"); hold(r) }),
		get("endpoint-other", "an endpoint of another origin", func(w http.ResponseWriter, r *http.Request) {
			stream(w, "event: endpoint\ndata: http://127.0.0.1:1/steal\n\n")
			hold(r)
		}),
		get("endpoint-then-end", "an endpoint, and then the end",
			func(w http.ResponseWriter, _ *http.Request) { stream(w, "event: endpoint\ndata: /sse?session=x\n\n") }),
		get("endpoint-nowhere", "an endpoint where nothing is", func(w http.ResponseWriter, r *http.Request) {
			stream(w, "event: endpoint\ndata: /nowhere\n\n")
			hold(r)
		}),
		get("stream-html", "a web page as the event stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}),
		get("stream-401", "status 401 for the event stream", answer(401)),
		get("stream-503", "status 503 for the event stream", answer(503)),
		get("stream-silent", "an event stream that never begins",
			func(_ http.ResponseWriter, r *http.Request) { hold(r) }),
		posted("post-404", "status 404 for each message", answer(404)),
		posted("post-500", "status 500 for each message", answer(500)),
		posted("post-silent", "no answer to each message", func(_ http.ResponseWriter, r *http.Request) { hold(r) }),
	}
}

// frame returns a fault of the WebSocket layer.
func frame(name, says string, f func(c *socket, a *right)) fault {
	return fault{name: name, says: says, on: []string{"ws"}, reply: func(w wire, a *right) { f(w.(*socket), a) }}
}

func socketFaults() []fault {
	upgrade := func(name, says string, f func(w http.ResponseWriter, r *http.Request)) fault {
		return fault{name: name, says: says, on: []string{"ws"}, start: func(s *server) { s.get = f }}
	}
	return []fault{
		frame("ws-binary", "the answer in a binary frame", func(c *socket, a *right) { c.frame(true, 2, a.answer) }),
		frame("ws-fragments", "the answer in many fragments, with pings between", func(c *socket, a *right) {
			for i := range a.answer {
				c.frame(i == len(a.answer)-1, map[bool]byte{true: 1, false: 0}[i == 0], a.answer[i:i+1])
				if i%50 == 0 {
					c.frame(true, 9, []byte("ping"))
				}
			}
		}),
		frame("ws-fragment-half", "a fragment, and never the rest",
			func(c *socket, a *right) { c.frame(false, 1, a.answer[:10]) }),
		frame("ws-close", "a goodbye instead of the answer",
			func(c *socket, _ *right) { c.frame(true, 8, []byte("\x03\xe8bye")) }),
		frame("ws-close-1011", "a goodbye because of an error",
			func(c *socket, _ *right) { c.frame(true, 8, []byte("\x03\xf3internal error")) }),
		frame("ws-close-odd", "a goodbye of one byte", func(c *socket, _ *right) { c.frame(true, 8, []byte("\x03")) }),
		frame("ws-reserved", "a frame with reserved bits",
			func(c *socket, _ *right) { c.write([]byte{0xf1, 2, '{', '}'}) }),
		frame("ws-opcode", "a frame of an unknown kind", func(c *socket, _ *right) { c.frame(true, 5, []byte("{}")) }),
		frame("ws-masked", "a masked frame, which a server may not send",
			func(c *socket, _ *right) { c.write([]byte{0x81, 0x82, 0, 0, 0, 0, '{', '}'}) }),
		frame("ws-length-huge", "a frame that says it has 2^62 bytes",
			func(c *socket, _ *right) { c.write([]byte{0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0, '{'}) }),
		frame("ws-pings", "20,000 pings before the answer", func(c *socket, a *right) {
			for range 20_000 {
				c.frame(true, 9, []byte("x"))
			}
			c.frame(true, 1, a.answer)
		}),
		upgrade("ws-no-upgrade", "status 200 instead of an upgrade", func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, "hello")
		}),
		upgrade("ws-401", "status 401 instead of an upgrade",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }),
		upgrade("ws-key-wrong", "an upgrade with the wrong key", func(w http.ResponseWriter, r *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_,
					_ = io.WriteString(c,
					"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
						"Sec-WebSocket-Accept: wrong\r\n\r\n")
				pause(r.Context(), time.Second)
				_ = c.Close()
			}
		}),
		upgrade("ws-upgrade-silent", "no answer to the upgrade",
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	}
}

// process returns a fault of the server process.
func process(name, says string, f func(s *server)) fault {
	return fault{name: name, says: says, on: []string{"stdio"}, start: f}
}

func processFaults() []fault {
	child := func(script string) func(*server) {
		return func(s *server) {
			cmd := exec.Command("/bin/sh", "-c", script)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // keeps the pipes open
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(s.stderr, "testserver:", err)
			}
		}
	}
	return []fault{
		process("exit", "ends at once with code 3",
			func(s *server) { fmt.Fprintln(s.stderr, "testserver: told to exit"); os.Exit(3) }),
		process("exit-0", "ends at once and says it went well", func(*server) { os.Exit(0) }),
		process("killed", "is killed at once", func(*server) {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Kill() // the process ends here
			}
			time.Sleep(time.Minute)
		}),
		process("stdout-closed", "closes its stdout and continues", func(*server) { _ = os.Stdout.Close() }),
		process("stdin-closed", "closes its stdin and continues",
			func(*server) { _ = os.Stdin.Close(); time.Sleep(time.Minute) }),
		process("stderr-flood", "writes without an end to stderr", func(s *server) {
			go func() {
				line := strings.Repeat("noise ", 1000) + "\n"
				for {
					if _, err := io.WriteString(s.stderr, line); err != nil {
						return
					}
				}
			}()
		}),
		process("stderr-line", "writes one line of 16 MB to stderr",
			func(s *server) { _, _ = io.WriteString(s.stderr, strings.Repeat("x", 16<<20)) }),
		process("banner", "writes a banner to stdout",
			func(*server) { fmt.Println("Welcome!\n==========\n\n{not json") }),
		{name: "deaf", says: "ignores the end of stdin and SIGTERM", on: []string{"stdio"},
			start: func(s *server) {
				signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
				s.deaf = true
			}},
		process("grandchild", "leaves a child behind", child("sleep 300")),
		process("grandchild-deaf", "leaves a child behind that ignores signals",
			child("trap '' TERM HUP INT; sleep 300 & sleep 300")),
		process("grandchild-chain", "is a chain of shells, as npx is", child("sh -c 'sh -c \"sleep 300\" & wait'")),
	}
}
