package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestWrittenTrust checks that a file that tenon writes for the person is trusted without a question, but only for what
// tenon wrote. A file that already existed needs a separate question.
func TestWrittenTrust(t *testing.T) {
	init, add := []string{"init"}, []string{"servers", "add", "web", "http://127.0.0.1:1/mcp"}
	mine := func(h *clone) { h.do(os.Remove(".env")) } // leaves only what the person has written
	for name, tt := range map[string]struct {
		do    func(h *clone)
		args  []string
		trust bool
		says  string
	}{
		"init in an empty folder":           {mine, init, true, ""},
		"servers add in an empty folder":    {mine, add, true, ""},
		"add-json in an empty folder":       {mine, []string{"servers", "add-json", "web", `{"url":"http://127.0.0.1:1/mcp"}`}, true, ""},
		"a script that the person names":    {mine, []string{"servers", "add", "s", "--", "sh", "run.sh"}, true, ""},
		"an env_file that the person names": {mine, []string{"servers", "add", "s", "--env-file", "server.env", "--", "sh", "run.sh"}, true, ""},
		"init beside .env":                  {nil, init, false, ".env was here before"},
		"init --force beside .env":          {func(h *clone) { h.write("tenon.yaml", "version: 1\n") }, []string{"init", "--force"}, false, ".env was here before"},
		"servers add beside .env":           {nil, add, false, ".env was here before"},
		"add-json beside .env":              {nil, []string{"servers", "add-json", "web", `{"url":"http://127.0.0.1:1/mcp"}`}, false, ".env was here before"},
		"import beside .env":                {nil, []string{"config", "import", "theirs.json", "--from", "claude", "--write"}, false, "asks before it uses"},
		".env is a link": {func(h *clone) {
			mine(h)
			h.do(os.WriteFile(h.beside("env"), []byte("A=b\n"), 0o600))
			h.do(os.Symlink(h.beside("env"), ".env"))
		}, init, false, ".env was here before"},
		".env is named as env_file, too": {nil, []string{"servers", "add", "s", "--env-file", ".env", "--", "sh", "run.sh"}, false, ".env was here before"},
		"servers add --trust":            {nil, []string{"servers", "add", "web", "http://127.0.0.1:1/mcp", "--trust"}, true, ""},
		"init --trust":                   {nil, []string{"init", "--trust"}, true, ""},
		"init beside agent.yaml": {func(h *clone) {
			mine(h)
			h.write("agent.yaml", "name: x\nmodel: {provider: openai, name: x}\ninstructions: {inline: x}\n")
		}, init, true, ""},
		"init beside mcp.json": {func(h *clone) {
			mine(h)
			h.write("mcp.json", `{"mcpServers": {"evil": {"command": "sh", "args": ["run.sh"]}}}`)
		}, init, true, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.write("theirs.json", `{"mcpServers": {"x": {"command": "sh"}}}`)
			h.do(os.Remove("tenon.yaml"))
			if tt.do != nil {
				tt.do(h)
			}
			status, stdout, stderr := runHere(t, tt.args...)
			if status != exitOK || !strings.Contains(stderr, tt.says) {
				t.Errorf("status %d, want %q: %s%s", status, tt.says, stdout, stderr)
			}
			if n := len(h.trusted()); (n > 0) != tt.trust {
				t.Errorf("%d records of trust: %s%s", n, stdout, stderr)
			}
			h.unharmed()
		})
	}
}

// TestWrittenTrustAfterwards checks that the owner's next edit does not trust other changes: a .env file that appears,
// or a link that changes, between the question and the edit.
func TestWrittenTrustAfterwards(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(h *clone)
		args []string
		want bool // the project is trusted afterwards
	}{
		"nothing":           {func(*clone) {}, []string{"servers", "add", "x", "http://127.0.0.1:1/mcp"}, true},
		"a script of a new": {func(h *clone) { h.write("other.sh", "true\n") }, []string{"servers", "add", "x", "--", "sh", "other.sh"}, true},
		".env is new":       {func(h *clone) { h.write(".env", "HTTPS_PROXY=http://127.0.0.1:1\n") }, []string{"servers", "add", "x", "http://127.0.0.1:1/mcp"}, false},
		"a script changed":  {func(h *clone) { h.write("run.sh", "false\n") }, []string{"servers", "add", "x", "http://127.0.0.1:1/mcp"}, false},
		"tenon.yaml changed": {func(h *clone) { h.write("tenon.yaml", "servers:\n  script: {command: sh, args: [-c, \"false\"]}\n") },
			[]string{"servers", "add", "x", "http://127.0.0.1:1/mcp"}, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.do(os.Remove(".env"))
			h.write("tenon.yaml", "servers:\n  script: {command: sh, args: [run.sh]}\n")
			h.trust()
			tt.do(h)
			h.edit(tt.args...)
			status, stdout, stderr := runHere(t, "trust", "show")
			if status != exitOK || strings.Contains(stdout, "is trusted since") != tt.want {
				t.Errorf("status %d, want trusted: %v: %s%s", status, tt.want, stdout, stderr)
			}
			h.unharmed()
		})
	}
}

// TestImportAsks checks that an import shows the other program's configuration and asks once, because its content comes
// from elsewhere.
func TestImportAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		typed    []string
		terminal bool
		flags    []string
		status   int
		trust    bool
	}{
		"yes":              {[]string{"y"}, true, nil, exitOK, true},
		"no":               {[]string{"n"}, true, nil, exitOK, false},
		"the end of input": {nil, true, nil, exitInterrupted, false},
		"in a pipe":        {[]string{"y"}, false, nil, exitOK, false},
		"with --trust":     {nil, false, []string{"--trust"}, exitOK, true},
		"--no-input":       {[]string{"y"}, true, []string{"--no-input"}, exitOK, false},
		"with -c":          {[]string{"n"}, true, []string{"-c", "tenon.yaml"}, exitOK, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.do(os.Remove("tenon.yaml"))
			h.do(os.Remove(".env"))
			h.write("theirs.json", `{"mcpServers": {"evil": {"command": "sh", "args": ["run.sh"]}}}`)
			var out, errs bytes.Buffer
			a := newApp(stdio{&typist{lines: tt.typed}, &out, &errs})
			a.inTTY, a.errTTY = tt.terminal, tt.terminal
			status := a.main(t.Context(), append([]string{"config", "import", "theirs.json", "--write"}, tt.flags...))
			if status != tt.status || !strings.Contains(out.String(), "Imported into tenon.yaml: evil") {
				t.Errorf("status %d, want %d: %s%s", status, tt.status, out.String(), errs.String())
			}
			if asked := strings.Contains(errs.String(), "evil: start sh run.sh"); asked != (tt.terminal && len(tt.flags) != 1) {
				t.Errorf("it shows what was imported: %v: %s", asked, errs.String())
			}
			if n := len(h.trusted()); (n > 0) != tt.trust {
				t.Errorf("%d records of trust: %s", n, errs.String())
			}
			if status, _, _ := runHere(t, "servers", "test", "evil"); h.harmed() != tt.trust {
				t.Errorf("status %d, something ran: %v", status, h.harmed())
			}
		})
	}
}

// TestOwnEditsOfOtherVerbs checks which commands are edits of the owner for a running tenon serve, which it applies at
// once: init --force, and config import with --write and --trust. Without --trust, the imported servers are held back.
func TestOwnEditsOfOtherVerbs(t *testing.T) {
	theirs := `{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "touch MARK; cat"]}}}`
	for name, tt := range map[string]struct {
		args  []string
		holds bool
	}{
		"init --force":                  {[]string{"init", "--force"}, true},
		"config import --write --trust": {[]string{"config", "import", "theirs.json", "--from", "claude", "--write", "--trust"}, true},
		"config import --write":         {[]string{"config", "import", "theirs.json", "--from", "claude", "--write"}, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := startServing(t, map[string]string{"tenon.yaml": quietFile})
			s.write(map[string]string{"theirs.json": strings.ReplaceAll(theirs, "MARK", s.mark())})
			t.Chdir(s.dir)
			if status, text := s.tenon(tt.args...); status != exitOK {
				t.Fatalf("%d %s", status, text)
			}
			server := "demo"
			if tt.args[0] == "config" {
				server = "evil"
			}
			if !tt.holds {
				s.awaits("held back until you agree")
				s.unharmed()
				return
			}
			s.awaits("config reloaded")
			for _, text := s.ask("GET", "/api/v1/servers", ""); !strings.Contains(text, `"`+server+`"`); _, text = s.ask("GET", "/api/v1/servers", "") {
				s.awaits("config reloaded")
			}
			if status, text := s.ask("GET", "/api/v1/config/proposals/reload", ""); status != 404 {
				t.Errorf("the owner's edit is held back: %d %s", status, text)
			}
		})
	}
}
