package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

// small writes a project with one server, whose script leaves a trace.
func (h *clone) small() {
	h.write("tenon.yaml", "servers:\n  script: {command: sh, args: [run.sh]}\n")
}

// trust trusts the project in its current state, and removes the traces.
func (h *clone) trust() {
	h.t.Helper()
	if status, _, stderr := runHere(h.t, "trust", "--trust"); status != exitOK {
		h.t.Fatalf("it cannot be trusted: status %d: %s", status, stderr)
	}
	if h.harmed() {
		h.t.Fatal("to trust a project started something")
	}
}

// do fails the test if a row could not change the files.
func (h *clone) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *clone) chdir(dir string) {
	h.t.Helper()
	h.do(os.MkdirAll(dir, 0o755))
	h.t.Chdir(dir)
}

// beside returns a path next to the project.
func (h *clone) beside(name string) string { return filepath.Join(filepath.Dir(h.dir), name) }

// other makes another folder the project.
func (h *clone) other(name string) *clone {
	o := &clone{t: h.t, dir: h.beside(name), traces: h.traces, url: h.url}
	o.chdir(o.dir)
	return o
}

// trick is something that an attacker tries, or that happens by accident.
type trick struct {
	do   func(h *clone)
	args []string // default: servers test script
	want int
	ran  bool // the server's script may run, because the person agreed to it
	root bool // only root can try it
}

// TestUntrustedProject tries to make tenon use a project that the person does not trust, or bytes that differ from the
// trusted ones.
func TestUntrustedProject(t *testing.T) {
	for _, tricks := range []map[string]trick{foundTricks, changeTricks, ownerTricks, recordTricks, namedTricks} {
		for name, tt := range tricks {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				if tt.root && os.Geteuid() != 0 {
					t.Skip("only root can give files away")
				}
				h := newClone(t)
				h.small()
				tt.do(h)
				args := tt.args
				if args == nil {
					args = []string{"servers", "test", "script"}
				}
				status, stdout, stderr := runHere(t, args...)
				if status != tt.want {
					t.Errorf("status %d, want %d: %s%s", status, tt.want, stdout, stderr)
				}
				if h.harmed() != tt.ran {
					t.Errorf("something ran: %v, want %v: %s", h.harmed(), tt.ran, stderr)
				}
			})
		}
	}
}

// ran is the exit status of servers test if the script was started: the script is not an MCP server.
const ran = exitUnreachable

// foundTricks are about a configuration file that tenon found by itself.
var foundTricks = map[string]trick{
	"found":           {do: func(*clone) {}, want: exitWaiting},
	"found, no-input": {do: func(*clone) {}, args: []string{"servers", "test", "script", "--no-input"}, want: exitWaiting},
	"found above":     {do: func(h *clone) { h.chdir(filepath.Join(h.dir, "a", "b")) }, want: exitWaiting},
	"in the home folder": {do: func(h *clone) {
		h.do(os.Rename("tenon.yaml", filepath.Join(os.Getenv("HOME"), "tenon.yaml")))
		h.do(os.Rename("run.sh", filepath.Join(os.Getenv("HOME"), "run.sh")))
		h.chdir(os.Getenv("HOME"))
	}, want: exitWaiting},
	".env sets TENON_TRUST": {do: func(h *clone) { h.write(".env", "TENON_TRUST=all\n") }, want: exitWaiting},
	"env_file sets TENON_TRUST": {do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: server.env}}\n")
		h.write("server.env", "TENON_TRUST=all\n")
	}, want: exitWaiting},
	".env sets TENON_CONFIG": {do: func(h *clone) { h.write(".env", "TENON_CONFIG=tenon.yaml\n") }, want: exitWaiting},
	".env sets HOME":         {do: func(h *clone) { h.write(".env", "HOME="+h.dir+"\nXDG_STATE_HOME="+h.dir+"\n") }, want: exitWaiting},
	".env sets PATH": {do: func(h *clone) {
		h.write(".env", "PATH="+h.dir+"\n")
		h.write("sh", "#!/bin/sh\ntouch "+h.trace("sh")+"\n")
		h.do(os.Chmod("sh", 0o700))
	}, want: exitWaiting},
	".env sets EDITOR and PAGER": {do: func(h *clone) {
		h.write(".env", "EDITOR=touch "+h.trace("e")+"\nPAGER=touch "+h.trace("p")+"\nVISUAL=touch "+h.trace("v")+"\n")
	}, want: exitWaiting},
	"TENON_TRUST in other letters": {do: func(h *clone) { h.t.Setenv("TENON_TRUST", "ALL") }, want: exitWaiting},
	"TENON_TRUST=1":                {do: func(h *clone) { h.t.Setenv("TENON_TRUST", "1") }, want: exitWaiting},
	".git is a file":               {do: func(h *clone) { h.write(".git", "gitdir: /nowhere\n") }, want: exitWaiting},
	".git has a configuration": {do: func(h *clone) {
		h.write(".git/config", "[core]\n\tpager = touch "+h.trace("pager")+"\n\tfsmonitor = touch "+h.trace("monitor")+"\n[alias]\n\tstatus = !touch "+h.trace("alias")+"\n")
	}, want: exitWaiting},
	".git is a link": {do: func(h *clone) { h.do(os.Symlink("/", ".git")) }, want: exitWaiting},
	"agent.yaml": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("agent.yaml", "name: x\nmodel: {provider: openai, name: x}\ninstructions: {inline: x}\ntools:\n  - {name: script, type: mcp, description: x, command: sh, args: [run.sh]}\n")
	}, want: exitWaiting},
	".mcp.json": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write(".mcp.json", `{"mcpServers": {"script": {"command": "sh", "args": ["run.sh"]}}}`)
	}, want: exitWaiting},
	"mcp.json": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("mcp.json", `{"mcpServers": {"script": {"command": "sh", "args": ["run.sh"]}}}`)
	}, want: exitWaiting},
	".vscode/mcp.json": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write(".vscode/mcp.json", `{"servers": {"script": {"type": "stdio", "command": "sh", "args": ["run.sh"]}}}`)
	}, want: exitWaiting},
	"tenon.yml": {do: func(h *clone) { h.do(os.Rename("tenon.yaml", "tenon.yml")) }, want: exitWaiting},
	"an alias of YAML": {do: func(h *clone) {
		h.write("tenon.yaml", "x-a: &a {command: sh, args: [run.sh]}\nservers:\n  script: *a\n")
	}, want: exitWaiting},
	"no server at all, only a limit": {do: func(h *clone) { h.write("tenon.yaml", "limits: {max_turns: 99}\n") }, args: []string{"run", "--model", "demo", "hi"}, want: exitWaiting},
	"SEC-F2 a step of a workflow, as a tool": {do: func(h *clone) {
		h.write("tenon.yaml", "secrets: {env: {env: MY_TOKEN}}\ntools: {flow: {kind: workflow, path: flows/flow.yaml}}\n")
	}, args: []string{"tools", "call", "flow"}, want: exitWaiting},
	"SEC-F2 a step of a workflow, by its name": {do: func(h *clone) {
		h.write("tenon.yaml", "secrets: {env: {env: MY_TOKEN}}\ntools: {flow: {kind: workflow, path: flows/flow.yaml}}\n")
	}, args: []string{"workflows", "run", "flow", "--yes"}, want: exitWaiting},
	"SEC-F2 a step of a workflow, by its file": {do: func(h *clone) { h.write("tenon.yaml", "secrets: {env: {env: MY_TOKEN}}\n") },
		args: []string{"workflows", "run", "flows/flow.yaml", "--yes"}, want: exitWaiting},
	"SEC-F2 a tool of kind http": {do: func(h *clone) {
		h.write("tenon.yaml", "tools: {web: {kind: http, description: x, request: {url: \""+h.url+"/x\"}}}\n")
	}, args: []string{"tools", "call", "web"}, want: exitWaiting},
	"a suite of eval names the file": {do: func(h *clone) {
		h.write("cases.yaml", "config: tenon.yaml\nmodel: script:script.yaml\ncases:\n  - {name: a, question: a, expect: {answer: {contains: [hi]}}}\n")
		h.chdir(h.beside("elsewhere"))
	}, args: []string{"eval", "../clone/cases.yaml"}, want: exitWaiting},
	"a table that was named in the folder": {do: func(*clone) {}, args: []string{"tools", "call", "--table", "t.arrow", "--row", "0", "--yes"}, want: exitWaiting},
	"a cassette is replayed":               {do: func(h *clone) { h.write("rec/cassette.json", "{}") }, args: []string{"run", "--replay", "rec", "hi"}, want: exitWaiting},
}

// changed trusts a project that names a file, and then changes the file.
func changed(yaml, file, text string) trick {
	return trick{want: exitWaiting, do: func(h *clone) {
		switch file {
		case "prices.json":
			h.write(file, "{\"models\": {\"a/b\": {\"input\": 1, \"output\": 1}}}")
		case "schema.json":
			h.write(file, "{\"type\": \"object\"}")
		case "prompt.tmpl":
			h.write(file, "{{.tool_list}} {{.question}}\n")
		case "data.arrow":
			h.do(table.WriteTools(h.t.Context(), file, nil, table.WriteOptions{}))
		}
		h.write("tenon.yaml", yaml)
		h.trust()
		h.write(file, text)
	}}
}

// pack packs a workflow as a zip.
func (h *clone) pack(from, to string) {
	h.t.Helper()
	_, p, err := config.ReadWorkflow(from)
	h.do(err)
	b, err := p.Zip()
	h.do(err)
	h.do(os.WriteFile(to, b, 0o600))
}

// ownerTricks are about files that other users can write.
var ownerTricks = map[string]trick{
	"the file is writable by all":   {do: func(h *clone) { h.trust(); h.do(os.Chmod("tenon.yaml", 0o666)) }, want: exitDenied},
	"the script is writable by all": {do: func(h *clone) { h.trust(); h.do(os.Chmod("run.sh", 0o666)) }, want: exitDenied},
	"the folder is writable by all": {do: func(h *clone) { h.trust(); h.do(os.Chmod(".", 0o777)) }, want: exitDenied},
	"a folder above is writable by all": {do: func(h *clone) {
		h.trust()
		h.do(os.Chmod(filepath.Dir(h.dir), 0o777))
	}, want: exitDenied},
	"a folder above is writable by all, with the sticky bit": {do: func(h *clone) {
		h.trust()
		h.do(os.Chmod(filepath.Dir(h.dir), 0o777|os.ModeSticky))
	}, want: ran, ran: true},
	"writable by all, and --trust": {do: func(h *clone) { h.do(os.Chmod("tenon.yaml", 0o666)) }, args: []string{"servers", "test", "script", "--trust"}, want: exitDenied},
	"writable by all, and -c":      {do: func(h *clone) { h.do(os.Chmod("tenon.yaml", 0o666)) }, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, want: exitDenied},
	"writable by all, and TENON_CONFIG": {do: func(h *clone) {
		h.do(os.Chmod("tenon.yaml", 0o666))
		h.t.Setenv("TENON_CONFIG", "tenon.yaml")
	}, want: exitDenied},
	"writable by all, and TENON_TRUST=all": {do: func(h *clone) {
		h.do(os.Chmod("tenon.yaml", 0o666))
		h.t.Setenv("TENON_TRUST", "all")
	}, want: ran, ran: true},
	"the folder of a script is writable by all": {do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [bin/run.sh]}}\n")
		h.write("bin/run.sh", "touch "+h.trace("script")+"\n")
		h.trust()
		h.do(os.Chmod("bin", 0o777))
	}, want: exitDenied},
	"the target of a link is writable by all": {do: func(h *clone) {
		h.do(os.WriteFile(h.beside("real.sh"), []byte("touch "+h.trace("script")+"\n"), 0o600))
		h.do(os.Remove("run.sh"))
		h.do(os.Symlink(h.beside("real.sh"), "run.sh"))
		h.trust()
		h.do(os.Chmod(h.beside("real.sh"), 0o666))
	}, want: exitDenied},
	"the store's folder is writable by all": {do: func(h *clone) {
		h.trust()
		h.do(os.Mkdir(".tenon", 0o777))
		h.do(os.Chmod(".tenon", 0o777))
	}, want: exitDenied},
	"your own file is writable by all": {do: func(h *clone) {
		own := filepath.Join(os.Getenv("HOME"), ".config", "tenon", "config.yaml")
		h.do(os.MkdirAll(filepath.Dir(own), 0o700))
		h.do(os.WriteFile(own, []byte("servers: {script: {command: sh, args: [-c, \"touch "+h.trace("x")+"\"]}}\n"), 0o666))
		h.do(os.Chmod(own, 0o666))
		h.do(os.Remove("tenon.yaml"))
	}, want: exitDenied},
	"writable by another group":    {do: func(h *clone) { h.trust(); h.do(os.Chown("tenon.yaml", 0, 12345)); h.do(os.Chmod("tenon.yaml", 0o664)) }, want: exitDenied, root: true},
	"writable by the own group":    {do: func(h *clone) { h.trust(); h.do(os.Chmod("tenon.yaml", 0o664)) }, want: ran, ran: true},
	"the file is another user's":   {do: func(h *clone) { h.trust(); h.do(os.Chown("tenon.yaml", 12345, 0)) }, want: exitDenied, root: true},
	"the folder is another user's": {do: func(h *clone) { h.trust(); h.do(os.Chown(".", 12345, 0)) }, want: exitDenied, root: true},
	"another user's, and TENON_TRUST=all": {do: func(h *clone) {
		h.do(os.Chown("tenon.yaml", 12345, 0))
		h.t.Setenv("TENON_TRUST", "all")
	}, want: ran, ran: true, root: true},
}

// stateDir returns the folder with the records of trust.
func stateDir() string { return filepath.Join(os.Getenv("HOME"), ".local", "state", "tenon", "trust") }

// recordTricks are about the records of trust.
var recordTricks = map[string]trick{
	"a nested project": {do: func(h *clone) {
		h.trust()
		h.write("sub/tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		h.write("sub/run.sh", "touch "+h.trace("evil")+"\n")
		h.chdir(filepath.Join(h.dir, "sub"))
	}, want: exitWaiting},
	"a folder within a trusted project": {do: func(h *clone) { h.trust(); h.chdir(filepath.Join(h.dir, "sub")) }, want: ran, ran: true},
	"tenon.yaml is a link to a trusted one": {do: func(h *clone) {
		h.trust()
		o := h.other("evil")
		o.write("run.sh", "touch "+h.trace("evil")+"\n")
		h.do(os.Symlink(filepath.Join(h.dir, "tenon.yaml"), "tenon.yaml"))
	}, want: exitWaiting},
	"tenon.yaml is a hard link to a trusted one": {do: func(h *clone) {
		h.trust()
		o := h.other("evil")
		o.write("run.sh", "touch "+h.trace("evil")+"\n")
		h.do(os.Link(filepath.Join(h.dir, "tenon.yaml"), "tenon.yaml"))
	}, want: exitWaiting},
	"the folder is a link to a trusted one": {do: func(h *clone) {
		h.trust()
		h.do(os.Symlink(h.dir, h.beside("link")))
		h.t.Chdir(h.beside("link"))
	}, want: ran, ran: true},
	"another project in the place of a trusted one": {do: func(h *clone) {
		h.trust()
		h.do(os.Rename(h.dir, h.beside("old")))
		o := h.other("clone")
		o.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		o.write("run.sh", "touch "+h.trace("evil")+"\n")
	}, want: exitWaiting},
	"a record of another project": {do: func(h *clone) {
		h.trust()
		records := h.trusted()
		b, err := os.ReadFile(records[0])
		h.do(err)
		o := h.other("evil")
		o.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh]}}\n")
		o.write("run.sh", "touch "+h.trace("evil")+"\n")
		h.do(os.WriteFile(filepath.Join(stateDir(), strings.Repeat("0", 32)+".json"), b, 0o600))
	}, want: exitWaiting},
	"a relative state folder, planted in the project": {do: func(h *clone) {
		h.trust()
		h.do(os.Rename(filepath.Join(os.Getenv("HOME"), ".local", "state"), "state"))
		h.t.Setenv("XDG_STATE_HOME", "state")
	}, want: exitWaiting},
	"a state folder within the project": {do: func(h *clone) {
		h.trust()
		h.do(os.Rename(filepath.Join(os.Getenv("HOME"), ".local", "state"), "state"))
		h.t.Setenv("XDG_STATE_HOME", filepath.Join(h.dir, "state"))
	}, want: exitDenied},
	"the records are writable by all": {do: func(h *clone) { h.trust(); h.do(os.Chmod(stateDir(), 0o777)) }, want: exitDenied},
	"a record is writable by all":     {do: func(h *clone) { h.trust(); h.do(os.Chmod(h.trusted()[0], 0o666)) }, want: exitDenied},
	"a record is another user's":      {do: func(h *clone) { h.trust(); h.do(os.Chown(h.trusted()[0], 12345, 0)) }, want: exitDenied, root: true},
	"a record is no JSON":             {do: func(h *clone) { h.trust(); h.do(os.WriteFile(h.trusted()[0], []byte("{"), 0o600)) }, want: exitWaiting},
	"a record is a link": {do: func(h *clone) {
		h.trust()
		r := h.trusted()[0]
		h.do(os.Rename(r, r+".real"))
		h.do(os.Symlink(r+".real", r))
	}, want: exitFailed},
	"a record of an older tenon": {do: func(h *clone) {
		old := filepath.Join(os.Getenv("HOME"), ".local", "state", "tenon", "consent.json")
		h.do(os.MkdirAll(filepath.Dir(old), 0o700))
		h.do(os.WriteFile(old, []byte(`{"x": true}`), 0o600))
	}, want: exitWaiting},
	"revoked": {do: func(h *clone) {
		h.trust()
		if status, _, stderr := runHere(h.t, "trust", "revoke"); status != exitOK {
			h.t.Error(stderr)
		}
	}, want: exitWaiting},
	"revoked by its folder, from elsewhere": {do: func(h *clone) {
		h.trust()
		h.t.Chdir(filepath.Dir(h.dir))
		if status, _, stderr := runHere(h.t, "trust", "revoke", "clone"); status != exitOK {
			h.t.Error(stderr)
		}
		h.t.Chdir(h.dir)
	}, want: exitWaiting},
	"your own edit of a project that you trust":        {do: func(h *clone) { h.trust(); h.edit("servers", "add", "more", "http://127.0.0.1:1/mcp") }, want: ran, ran: true},
	"your own edit of a project that you do not trust": {do: func(h *clone) { h.edit("servers", "add", "more", "http://127.0.0.1:1/mcp") }, want: exitWaiting},
	"your own edit after a stranger's": {do: func(h *clone) {
		h.trust()
		h.write("run.sh", "touch "+h.trace("evil")+"\n")
		h.edit("servers", "add", "more", "http://127.0.0.1:1/mcp")
	}, want: exitWaiting},
	"your own edit after a stranger's of the file": {do: func(h *clone) {
		h.trust()
		h.write("tenon.yaml", "servers:\n  script: {command: sh, args: [-c, \"touch "+h.trace("evil")+"\"]}\n")
		h.edit("servers", "add", "more", "http://127.0.0.1:1/mcp")
	}, want: exitWaiting},
	"your own edits, one after another": {do: func(h *clone) {
		h.trust()
		h.edit("servers", "add", "more", "http://127.0.0.1:1/mcp")
		h.edit("servers", "remove", "more")
		h.edit("tools", "add", "x", "--server", "script")
		h.edit("tools", "remove", "x")
	}, want: ran, ran: true},
	"a new file of your own": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.do(os.Remove(".env"))
		h.edit("servers", "add", "script", "--", "sh", "run.sh")
	}, want: ran, ran: true},
	"a new file of your own beside a stranger's .env": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.edit("servers", "add", "script", "--", "sh", "run.sh")
	}, want: exitWaiting},
	"an import into a project that you trust": {do: func(h *clone) {
		h.trust()
		h.write("theirs.json", `{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "touch `+h.trace("evil")+`"]}}}`)
		h.edit("config", "import", "theirs.json", "--write")
	}, want: exitWaiting},
	"an import into a new file": {do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("theirs.json", `{"mcpServers": {"script": {"command": "sh", "args": ["-c", "touch `+h.trace("evil")+`"]}}}`)
		h.edit("config", "import", "theirs.json", "--write")
	}, want: exitWaiting},
}

// edit runs a verb that changes the configuration.
func (h *clone) edit(args ...string) {
	h.t.Helper()
	if status, _, stderr := runHere(h.t, args...); status != exitOK {
		h.t.Fatalf("%v: status %d: %s", args, status, stderr)
	}
}

// namedTricks are about files that the person named on the command line.
var namedTricks = map[string]trick{
	"-c":                    {do: func(*clone) {}, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, want: ran, ran: true},
	"-c, and then without":  {do: func(h *clone) { runHere(h.t, "servers", "list", "--no-connect", "-c", "tenon.yaml") }, want: exitWaiting},
	"TENON_CONFIG":          {do: func(h *clone) { h.t.Setenv("TENON_CONFIG", "tenon.yaml") }, want: ran, ran: true},
	"TENON_TRUST=all":       {do: func(h *clone) { h.t.Setenv("TENON_TRUST", "all") }, want: ran, ran: true},
	"--trust":               {do: func(*clone) {}, args: []string{"servers", "test", "script", "--trust"}, want: ran, ran: true},
	"--trust is remembered": {do: func(h *clone) { runHere(h.t, "runs", "list", "--trust") }, want: ran, ran: true},
	"TENON_TRUST is not": {do: func(h *clone) {
		h.t.Setenv("TENON_TRUST", "all")
		runHere(h.t, "runs", "list")
		h.t.Setenv("TENON_TRUST", "")
	}, want: exitWaiting},
	"your own file alone": {do: func(h *clone) {
		own := filepath.Join(os.Getenv("HOME"), ".config", "tenon", "config.yaml")
		h.do(os.MkdirAll(filepath.Dir(own), 0o700))
		h.do(os.WriteFile(own, []byte("servers: {script: {command: sh, args: [-c, \"touch "+h.trace("own")+"\"]}}\n"), 0o600))
		h.do(os.Remove("tenon.yaml"))
	}, want: ran, ran: true},
	"a server of the command line": {do: func(*clone) {}, args: []string{"tools", "list", "--", "sh", "run.sh"}, want: ran, ran: true},
}

// TestTrustFromStdin checks that a configuration from stdin is treated as the person's own.
func TestTrustFromStdin(t *testing.T) {
	h := newClone(t)
	var out, errs bytes.Buffer
	in := strings.NewReader("servers: {script: {command: sh, args: [run.sh]}}\n")
	if status := run(t.Context(), []string{"servers", "test", "script", "-c", "-"}, stdio{in, &out, &errs}); status != ran || !h.harmed() {
		t.Errorf("status %d: %s", status, errs.String())
	}
}
