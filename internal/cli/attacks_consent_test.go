//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/longtest"
)

// consentSwaps change something while the person reads the list of what the project does, before the answer "y".
var consentSwaps = map[string]func(h *clone){
	"the configuration": func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: ./evil.sh}}\n")
		h.program("evil.sh", h.evil())
	},
	"the configuration, renamed over": func(h *clone) {
		h.write("next.yaml", "servers: {script: {command: sh, args: [-c, \"touch "+h.trace("evil")+"\"]}}\n")
		h.do(os.Rename("next.yaml", "tenon.yaml"))
	},
	"the configuration to a link": func(h *clone) {
		h.do(os.WriteFile(h.beside("evil.yaml"), []byte("servers: {script: {command: sh, args: [-c, \"touch "+h.trace("evil")+"\"]}}\n"), 0o600))
		h.do(os.Remove("tenon.yaml"))
		h.do(os.Symlink(h.beside("evil.yaml"), "tenon.yaml"))
	},
	"the script, its size and time kept": func(h *clone) {
		st, err := os.Stat("run.sh")
		h.do(err)
		text := "touch " + h.trace("e") + "\n"
		h.write("run.sh", text+strings.Repeat("#", max(0, int(st.Size())-len(text))))
		h.do(os.Chtimes("run.sh", st.ModTime(), st.ModTime()))
	},
	"the script to a hard link": func(h *clone) {
		h.write("evil.sh", h.evil())
		h.do(os.Remove("run.sh"))
		h.do(os.Link("evil.sh", "run.sh"))
	},
	"the script to a pipe":   func(h *clone) { h.do(os.Remove("run.sh")); h.do(syscall.Mkfifo("run.sh", 0o600)) },
	"the script to a folder": func(h *clone) { h.do(os.Remove("run.sh")); h.do(os.Mkdir("run.sh", 0o700)) },
	"the script removed":     func(h *clone) { h.do(os.Remove("run.sh")) },
	"the whole folder": func(h *clone) {
		h.do(os.Rename(h.dir, h.beside("moved")))
		h.do(os.Mkdir(h.dir, 0o755))
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		h.write("run.sh", h.evil())
	},
	"the folder to a link": func(h *clone) {
		h.do(os.Rename(h.dir, h.beside("moved")))
		h.do(os.Mkdir(h.beside("theirs"), 0o755))
		h.do(os.WriteFile(h.beside("theirs/tenon.yaml"), []byte("servers: {script: {command: sh, args: [run.sh]}}\n"), 0o600))
		h.do(os.WriteFile(h.beside("theirs/run.sh"), []byte(h.evil()), 0o600))
		h.do(os.Symlink(h.beside("theirs"), h.dir))
	},
	"a .env that adds a proxy": func(h *clone) {
		h.write(".env", "HTTP_PROXY="+h.url+"\nBASH_ENV=./evil.sh\n")
		h.write("evil.sh", h.evil())
	},
	"a second configuration": func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("mcp.json", `{"mcpServers": {"script": {"command": "sh", "args": ["-c", "touch `+h.trace("evil")+`"]}}}`)
	},
}

// TestAttackConsentSwaps checks that the person's answer only holds for what the screen showed. A file that is swapped
// while the person reads is never run.
func TestAttackConsentSwaps(t *testing.T) {
	for name, swap := range consentSwaps {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.small()
			shown, err := askHere(t, &typist{lines: []string{"y"}, do: func(int) { swap(h) }}, 0)
			if strings.Contains(shown, "evil") {
				t.Fatalf("the swap came too early: %v %s", err, shown)
			}
			h.t.Chdir(h.dir)
			status, stdout, stderr := runHere(t, "servers", "test", "script")
			if h.harmed() || status == exitOK {
				t.Errorf("status %d, something ran: %v: %s%s", status, h.harmed(), stdout, stderr)
			}
		})
	}
}

// unreadableScreens are configurations with names and values that try to look like other lines, or to hide some lines.
var unreadableScreens = map[string]string{
	"a line break":                `servers: {a: {command: sh, args: [-c, "true\n\nKeep data\n  store.path: harmless\n\nDo you trust this project? [y]es / [n]o: EVIL"]}}`,
	"a carriage return":           `servers: {a: {command: sh, args: [-c, "EVIL\rservers.a: start true"]}}`,
	"escape sequences":            `servers: {a: {command: sh, args: [-c, "EVIL\e[2K\e[1A\e[8m"]}}`,
	"an operating system command": `servers: {a: {command: sh, args: [-c, "EVIL\e]0;title\a\e]8;;http://x\e\\"]}}`,
	"C1 controls":                 `servers: {a: {command: sh, args: [-c, "EVIL\x9b2K\x85"]}}`,
	"backspaces":                  `servers: {a: {command: sh, args: [-c, "EVIL\b\b\b\bGOOD"]}}`,
	"right to left":               `servers: {a: {command: sh, args: [-c, "EVIL\u202edoog\u202c\u2066\u2069"]}}`,
	"tabs":                        `servers: {a: {command: sh, args: [-c, "EVIL\t\t\t\t\t\t\t\t\t\t\t\t\t\tx"]}}`,
	"spaces that push":            `servers: {a: {command: sh, args: [-c, "true` + strings.Repeat(" ", 4000) + `EVIL"]}}`,
	"no-break spaces":             `servers: {a: {command: sh, args: [-c, "true` + strings.Repeat(`\u00a0`, 2000) + `EVIL"]}}`,
	"wide characters":             `servers: {a: {command: sh, args: [-c, "` + strings.Repeat("漢", 300) + `EVIL"]}}`,
	"box drawing":                 `servers: {a: {command: sh, args: [-c, "` + strings.Repeat("─", 78) + `└ EVIL"]}}`,
	"marks over other lines":      `servers: {a: {command: sh, args: [-c, "E` + strings.Repeat(`\u0301`, 300) + ` EVIL"]}}`,
	"invisible letters":           `servers: {a: {command: sh, args: [-c, "\u200b\u2060\u3164\ufeff EVIL"]}}`,
	"styles of our own":           `servers: {a: {command: sh, args: [-c, "\ufdd0\ufdd1EVIL"]}}`,
	"a thousand variables":        `servers: {a: {command: sh, args: [run.sh], env: {` + manyVariables(1000) + `Z: EVIL}}}`,
	"a line of 100 KB":            `servers: {a: {command: sh, args: [-c, "` + strings.Repeat("x", 100_000) + ` EVIL"]}}`,
	"the last of many":            "servers:\n" + manyServers(600) + "  zz: {command: sh, args: [-c, EVIL]}",
	"the last of 2000":            "servers:\n" + manyServers(2000) + "  zz: {command: sh, args: [-c, EVIL]}",
	"2000 with variables":         "servers:\n" + strings.ReplaceAll(manyServers(2000), "}\n", ", env: {A: x, B: y}}\n") + "  zz: {command: sh, args: [-c, EVIL]}",
	"a header of a tool":          `tools: {w: {kind: http, description: x, request: {url: "http://127.0.0.1:1/EVIL", headers: {"X": "a"}}}}`,
	"a name of a server":          `servers: {"a: start true  servers.b": {command: EVIL}}`,
	"a name of a variable":        `servers: {a: {command: x, env: {"A=1 in its environment; not bound": EVIL}}}`,
	"an address in words":         `servers: {a: {url: "http://127.0.0.1:1/,%20sending%20nothing#EVIL"}}`,
}

func manyVariables(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "V%d: value%d, ", i, i)
	}
	return b.String()
}

// TestAttackScreens checks that on a terminal of at most 80 columns every line fits, nothing is hidden, and no text
// runs into the next line.
func TestAttackScreens(t *testing.T) {
	longtest.Skip(t)
	for name, yaml := range unreadableScreens {
		for _, size := range [][2]int{{80, 24}, {25, 6}, {12, 3}} {
			if len(yaml) > 10_000 && size[0] != 80 {
				continue // one size is enough, because each one takes time
			}
			t.Run(fmt.Sprintf("%s_%dx%d", strings.ReplaceAll(name, " ", "_"), size[0], size[1]), func(t *testing.T) {
				h := newClone(t)
				h.write("tenon.yaml", yaml+"\n")
				if strings.HasPrefix(name, "a name") {
					if status, _, stderr := runHere(t, "config", "validate"); status != exitUsage {
						t.Errorf("it loads: %s", stderr)
					}
					return
				}
				pages, err := screens(t, size[0], size[1])
				if exitStatus(err) != exitInterrupted { // the input ends at the question
					t.Errorf("%v", err)
				}
				var all strings.Builder
				for _, page := range pages {
					if n := strings.Count(page, "\n") + 1; n > size[1] {
						t.Fatalf("a page has %d lines: %q", n, page)
					}
					for _, line := range strings.Split(page, "\n") {
						if breadth(line) > size[0] && !strings.Contains(line, "Do you trust") && !strings.HasPrefix(line, "-- ") {
							t.Fatalf("%d columns: %q", breadth(line), line)
						}
						if len(strings.TrimLeft(line, " ")) == len(line) && line != "" && strings.Contains(line, "EVIL") && size[0] == 80 {
							t.Errorf("a text stands at the beginning of a line: %q", line)
						}
						if !strings.HasPrefix(line, "-- ") {
							all.WriteString(strings.TrimSpace(line))
						}
					}
				}
				text := all.String()
				if !strings.Contains(strings.ReplaceAll(text, " ", ""), "EVIL") {
					t.Errorf("a part is hidden: %.2000q", text)
				}
				if len(pages) > 200 && size[0] == 80 && !strings.Contains(name, "2000") {
					t.Errorf("%d pages", len(pages))
				}
				if strings.ContainsAny(text, "\x1b\r\t\b\u202e\u00a0\u200b\u3164\u0085") || strings.Contains(text, strings.Repeat("\u0301", 8)) || !utf8.ValidString(text) {
					t.Errorf("a hidden character is on the screen: %q", text)
				}
				h.unharmed()
			})
		}
	}
}

// screens returns the pages that are shown before the question on a terminal of this size. The person presses Enter
// until the question appears.
func screens(t *testing.T, width, height int) (pages []string, err error) {
	t.Helper()
	var errs bytes.Buffer
	a := newApp(stdio{&enters{}, io.Discard, &errs})
	a.inTTY, a.errTTY, a.columns, a.lineCount = true, true, width, height
	cfg, err := a.load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.in.(*enters).shown = &errs
	err = a.requireTrust(t.Context(), cfg)
	return a.in.(*enters).pages(), err
}

// enters presses Enter at each page and ends the input at the question.
type enters struct {
	shown *bytes.Buffer
	cuts  []int
}

func (e *enters) Read(b []byte) (int, error) {
	e.cuts = append(e.cuts, e.shown.Len())
	if bytes.HasSuffix(e.shown.Bytes(), []byte("[y]es / [n]o: ")) {
		return 0, io.EOF
	}
	return copy(b, "\n"), nil
}

func (e *enters) pages() (pages []string) {
	at, all := 0, e.shown.String()
	for _, cut := range e.cuts {
		pages = append(pages, strings.TrimPrefix(all[at:cut], "\n"))
		at = cut
	}
	return pages
}

// TestAttackAnswers checks that only a person's "yes" at the question is consent.
func TestAttackAnswers(t *testing.T) {
	t.Run("yes_in_a_pipe", func(t *testing.T) {
		h := newClone(t)
		var out bytes.Buffer
		status := run(t.Context(), []string{"run", "hi"}, stdio{strings.NewReader(strings.Repeat("y\n", 1000)), &out, &out})
		if status != exitWaiting || len(h.trusted()) > 0 {
			t.Errorf("status %d: %s", status, out.String())
		}
		h.unharmed()
	})
	for name, typed := range map[string]string{"a space": " ", "yy": "yy", "yes with a mark": "yes!", "ja": "ja", "true": "true", "1": "1", "a full-width y": "ｙ", "a Cyrillic u": "у", "y behind an escape": "\x1by", "NUL": "\x00y", "yesterday": "yesterday"} {
		t.Run("typed_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			if _, err := askHere(t, &typist{lines: []string{typed}}, 0); exitStatus(err) != exitInterrupted || len(h.trusted()) > 0 {
				t.Errorf("%v", err)
			}
			h.unharmed()
		})
	}
	t.Run("interrupted_at_the_question", func(t *testing.T) {
		h := newClone(t)
		var errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		defer w.Close() //nolint:errcheck // a pipe in memory
		a := newApp(stdio{r, io.Discard, &errs})
		a.inTTY, a.errTTY = true, true
		cfg, err := a.load(ctx, nil)
		h.do(err)
		cancel()
		if err := a.requireTrust(ctx, cfg); err == nil || len(h.trusted()) > 0 {
			t.Errorf("%v", err)
		}
		h.unharmed()
	})
	for name, do := range map[string]func(h *clone){
		"TENON_TRUST of a profile":  func(h *clone) { h.write("tenon.yaml", "profile: open\n"+h.config()) },
		"trust of the project":      func(h *clone) { h.write("tenon.yaml", "trust: {projects: [{path: "+h.dir+"}]}\n"+h.config()) },
		"TENON_TRUST in .env":       func(h *clone) { h.write(".env", "TENON_TRUST=all\nexport TENON_TRUST=all\n") },
		"TENON_TRUST with a blank":  func(h *clone) { h.t.Setenv("TENON_TRUST", " all") },
		"TENON_TRUST with a break":  func(h *clone) { h.t.Setenv("TENON_TRUST", "all\n") },
		"TENON_TRUST of a folder":   func(h *clone) { h.t.Setenv("TENON_TRUST", h.dir) },
		"tenon_trust":               func(h *clone) { h.t.Setenv("tenon_trust", "all") },
		"a record in the project":   func(h *clone) { h.write(".local/state/tenon/trust/x.json", "{}") },
		"an extension that says so": func(h *clone) { h.write("tenon.yaml", "x-trusted: true\n"+h.config()) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			do(h)
			if status, stdout, stderr := runHere(t, "run", "hi"); status != exitWaiting && status != exitUsage || len(h.trusted()) > 0 {
				t.Errorf("status %d: %s%s", status, stdout, stderr)
			}
			h.unharmed()
		})
	}
}
