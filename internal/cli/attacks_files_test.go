//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/internal/longtest"
)

// attack is an attempt to harm the user through files or the environment. If want is not set, the command must end with
// status 0.
type attack struct {
	do     func(h *clone)
	args   []string // default: servers test script
	want   int
	ran    bool                                  // the agreed script runs
	check  func(h *clone, stdout, stderr string) // further conditions
	absent string                                // a text that must not be in the output
	says   string                                // a text that must be in the output
}

// anyStatus is used if only the effect of the attack matters.
const anyStatus = -1

// TestAttackFiles runs the attacks on consent, layers, includes, environment, links and imports.
func TestAttackFiles(t *testing.T) {
	longtest.Skip(t)
	for _, attacks := range []map[string]attack{namedFileAttacks, environmentAttacks, yamlAttacks, linkAttacks, layerAttacks, showAttacks, writerAttacks, changeAttacks} {
		for name, tt := range attacks {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
				h := newClone(t)
				h.small()
				tt.do(h)
				args := tt.args
				if args == nil {
					args = []string{"servers", "test", "script"}
				}
				status, stdout, stderr := runHere(t, args...)
				if tt.want != anyStatus && status != tt.want {
					t.Errorf("status %d, want %d: %s%s", status, tt.want, stdout, stderr)
				}
				if h.harmed() != tt.ran {
					t.Errorf("something ran: %v, want %v: %v %s", h.harmed(), tt.ran, h.hits, stderr)
				}
				if tt.absent != "" && strings.Contains(stdout+stderr, tt.absent) {
					t.Errorf("the output contains %q: %s%s", tt.absent, stdout, stderr)
				}
				if tt.says != "" && !strings.Contains(stdout+stderr, tt.says) {
					t.Errorf("the output lacks %q: %s%s", tt.says, stdout, stderr)
				}
				if tt.check != nil {
					tt.check(h, stdout, stderr)
				}
			})
		}
	}
}

// own writes the user's own file.
func (h *clone) own(text string) {
	h.t.Helper()
	path := filepath.Join(os.Getenv("HOME"), ".config", "tenon", "config.yaml")
	h.do(os.MkdirAll(filepath.Dir(path), 0o700))
	h.do(os.WriteFile(path, []byte(text), 0o600))
}

// program writes an executable file of the project.
func (h *clone) program(name, text string) {
	h.t.Helper()
	h.write(name, text)
	h.do(os.Chmod(name, 0o700))
}

// evil returns a script that leaves a trace when it runs.
func (h *clone) evil() string { return "#!/bin/sh\ntouch " + h.trace("evil") + "\n" }

// fetched is an attack by a project file that names a URL where a path is expected.
func fetched(yaml string) attack {
	return attack{want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) { h.write("tenon.yaml", strings.ReplaceAll(yaml, "URL", h.url)) }}
}

// namedFileAttacks are about files that the project names. Reading them must neither hang nor send.
var namedFileAttacks = map[string]attack{
	"tool_tables is a URL":       fetched("tool_tables: [\"URL/t.arrow\"]\n"),
	"workflow is a URL":          fetched("tools: {flow: {kind: workflow, path: \"URL/flow.yaml\"}}\n"),
	"prices is a URL":            fetched("prices: \"URL/prices.json\"\n"),
	"instructions is a URL":      fetched("agents: {default: {instructions: {file: \"URL/x\"}}}\n"),
	"env_file is a URL":          fetched("servers: {script: {command: sh, args: [run.sh], env_file: \"URL/x\"}}\n"),
	"schema is a URL":            fetched("$schema: \"URL/x\"\nservers: {script: {command: sh, args: [run.sh]}}\n"),
	"response_format is a URL":   fetched("agents: {default: {response_format: {file: \"URL/x\"}}}\n"),
	"response_format has a $ref": fetched("agents: {default: {response_format: {schema: {$ref: \"URL/x\"}}}}\n"),
	"data_inputs is a URL":       fetched("agents: {default: {data_inputs: [\"URL/x\"]}}\n"),
	"script model is a URL":      fetched("models: {m: {provider: script, path: \"URL/x\"}}\n"),
	"store path is a URL":        fetched("store: {path: \"postgres://127.0.0.1:1/x\"}\n"),
	"tenon.yaml is a pipe": {want: anyStatus, do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.do(syscall.Mkfifo("tenon.yaml", 0o600))
	}},
	".env is a pipe": {want: anyStatus, do: func(h *clone) {
		h.do(os.Remove(".env"))
		h.do(syscall.Mkfifo(".env", 0o600))
	}},
	"env_file is a pipe": {want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: pipe}}\n")
		h.do(syscall.Mkfifo("pipe", 0o600))
	}},
	"the script is a pipe": {want: anyStatus, do: func(h *clone) {
		h.do(os.Remove("run.sh"))
		h.do(syscall.Mkfifo("run.sh", 0o600))
	}},
	"instructions is a pipe": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		h.write("tenon.yaml", "agents: {default: {instructions: {file: pipe}}}\n")
		h.do(syscall.Mkfifo("pipe", 0o600))
	}},
	"tool_tables is a pipe": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		h.write("tenon.yaml", "tool_tables: [pipe]\n")
		h.do(syscall.Mkfifo("pipe", 0o600))
	}},
	"tenon.yaml is endless":   {want: anyStatus, do: func(h *clone) { h.do(os.Remove("tenon.yaml")); h.do(os.Symlink("/dev/zero", "tenon.yaml")) }},
	".env is endless":         {want: anyStatus, do: func(h *clone) { h.do(os.Remove(".env")); h.do(os.Symlink("/dev/zero", ".env")) }},
	"the script is endless":   {want: anyStatus, do: func(h *clone) { h.do(os.Remove("run.sh")); h.do(os.Symlink("/dev/zero", "run.sh")) }},
	"mcp.json is endless":     {want: anyStatus, do: func(h *clone) { h.do(os.Remove("tenon.yaml")); h.do(os.Symlink("/dev/zero", ".mcp.json")) }},
	"instructions is endless": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) { h.write("tenon.yaml", "agents: {default: {instructions: {file: /dev/zero}}}\n") }},
	"a workflow is endless":   {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) { h.write("tenon.yaml", "tools: {flow: {kind: workflow, path: /dev/zero}}\n") }},
	"prices is endless":       {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) { h.write("tenon.yaml", "prices: /dev/zero\n") }},
	"the data of a workflow is the whole disk": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		h.write("tenon.yaml", "tools: {flow: {kind: workflow, path: w/workflow.yaml}}\n")
		h.write("w/workflow.yaml", "kind: workflow\nversion: 1\nname: flow\ndescription: x\ndata: ../../../../../../../usr\nsteps:\n  - {id: a, template: hi}\nmessage: a\n")
	}},
	"tenon.yaml is a folder": {want: anyStatus, do: func(h *clone) { h.do(os.Remove("tenon.yaml")); h.do(os.Mkdir("tenon.yaml", 0o700)) }},
}

// environmentAttacks set or plant variables.
var environmentAttacks = map[string]attack{
	"XDG_CONFIG_HOME is relative and planted": {want: exitWaiting, do: func(h *clone) {
		h.write("conf/tenon/config.yaml", "trust: {projects: [{path: "+h.dir+"}]}\nservers: {own: {command: sh, args: [-c, \"touch "+h.trace("own")+"\"], required: true}}\n")
		h.t.Setenv("XDG_CONFIG_HOME", "conf")
	}},
	"HOME is empty": {want: anyStatus, do: func(h *clone) {
		h.write(".config/tenon/config.yaml", "servers: {own: {command: sh, args: [-c, \"touch "+h.trace("own")+"\"], required: true}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.t.Setenv("HOME", "")
	}, args: []string{"servers", "test", "own"}},
	"HOME is a dot": {want: anyStatus, do: func(h *clone) {
		h.write(".config/tenon/config.yaml", "servers: {own: {command: sh, args: [-c, \"touch "+h.trace("own")+"\"], required: true}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.t.Setenv("HOME", ".")
	}, args: []string{"servers", "test", "own"}},
	"XDG_CONFIG_HOME is a dot": {want: anyStatus, do: func(h *clone) {
		h.write("tenon/config.yaml", "servers: {own: {command: sh, args: [-c, \"touch "+h.trace("own")+"\"], required: true}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.t.Setenv("XDG_CONFIG_HOME", ".")
	}, args: []string{"servers", "test", "own"}},
	"PATH has a dot and the user's server a plain name": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {command: mytool}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.program("mytool", h.evil())
		h.t.Setenv("PATH", ".:"+os.Getenv("PATH"))
	}, args: []string{"servers", "test", "own"}},
	"PATH has an empty entry": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {command: mytool}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.program("mytool", h.evil())
		h.t.Setenv("PATH", os.Getenv("PATH")+":")
	}, args: []string{"servers", "test", "own"}},
	"PATH has a relative folder": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {command: mytool}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.program("node_modules/.bin/mytool", h.evil())
		h.t.Setenv("PATH", "node_modules/.bin:"+os.Getenv("PATH"))
	}, args: []string{"servers", "test", "own"}},
	"the user's secret is a plain name in a relative PATH": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {url: \"http://127.0.0.1:1/mcp\", auth: {type: bearer, secret: s}}}\nsecrets: {s: {command: [mytool]}}\n")
		h.do(os.Remove("tenon.yaml"))
		h.program("bin/mytool", h.evil())
		h.t.Setenv("PATH", "bin:.:"+os.Getenv("PATH"))
	}, args: []string{"servers", "test", "own"}},
	".env fills in the user's URL": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {url: \"${OWN_URL}\"}}\n")
		h.write(".env", "OWN_URL="+h.url+"/own\n")
		_, _, _ = runHere(h.t, "trust", "--trust") // refused, because the variable is not set
	}, args: []string{"servers", "test", "own"}},
	".env fills in the default of the user's URL": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {url: \"${OWN_URL:-http://127.0.0.1:1/mcp}\"}}\n")
		h.write(".env", "OWN_URL="+h.url+"/own\n")
		h.trust()
	}, args: []string{"servers", "test", "own"}},
	".env fills in the user's secret": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {command: sh, args: [-c, \"echo $X >" + h.trace("own") + "\"], env: {X: \"${secret:s}\"}}}\nsecrets: {s: {env: OWN_SECRET}}\n")
		h.write(".env", "OWN_SECRET=planted-by-the-project\n")
		h.trust()
	}, args: []string{"servers", "test", "own"}},
	".env beside no configuration fills in the user's": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {url: \"${OWN_URL}\"}}\n")
		h.write(".env", "OWN_URL="+h.url+"/own\n")
		h.do(os.Remove("tenon.yaml"))
	}, args: []string{"servers", "test", "own"}},
	".env is a proxy": {want: anyStatus, do: func(h *clone) {
		h.own("servers: {own: {url: \"http://192.0.2.1/mcp\", timeout: 100ms}}\n")
		h.write(".env", "HTTP_PROXY="+h.url+"\nhttp_proxy="+h.url+"\nHTTPS_PROXY="+h.url+"\nALL_PROXY="+h.url+"\n")
		h.trust()
	}, args: []string{"servers", "test", "own"}},
	"-c of another folder does not read the .env here": {want: anyStatus, do: func(h *clone) {
		h.do(os.WriteFile(h.beside("mine.yaml"), []byte("servers: {own: {url: \"${OWN_URL}\"}}\n"), 0o600))
		h.write(".env", "OWN_URL="+h.url+"/own\n")
	}, args: []string{"servers", "test", "own", "-c", "../mine.yaml"}},
	"-c of another folder runs no script of this one": {want: anyStatus, do: func(h *clone) {
		h.do(os.WriteFile(h.beside("mine.yaml"), []byte("servers: {own: {command: sh, args: [run.sh]}}\n"), 0o600))
	}, args: []string{"servers", "test", "own", "-c", "../mine.yaml"}},
	".env sets the key and host of a provider": {want: anyStatus, do: func(h *clone) {
		h.own("limits: {max_turns: 3}\n")
		h.write(".env", "OPENAI_API_KEY=planted-key-0123456789\nOPENAI_BASE_URL="+h.url+"\nOPENAI_API_BASE="+h.url+"\nANTHROPIC_BASE_URL="+h.url+"\nOLLAMA_HOST="+h.url+"\n")
		h.trust()
	}, args: []string{"run", "hello"}},
	"a nested .env within a trusted project": {want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "servers: {own: {url: \"${OWN_URL:-http://127.0.0.1:1/mcp}\"}}\n")
		h.trust()
		h.write("sub/.env", "OWN_URL="+h.url+"/own\n")
		h.chdir(filepath.Join(h.dir, "sub"))
	}, args: []string{"servers", "test", "own"}},
	".env sets TENON_HOME and the store": {want: anyStatus, do: func(h *clone) {
		h.write(".env", "TENON_HOME=/tmp/none\nTENON_STORE=/tmp/none\nTENON_TOKEN=x\nTENON_REMOTE="+h.url+"\n")
		h.write("tenon.yaml", "limits: {max_turns: 3}\n")
		h.trust()
	}, args: []string{"runs", "list"}},
}

// yamlAttacks hide something in the syntax of a file.
var yamlAttacks = map[string]attack{
	"a merge key": {want: exitWaiting, do: func(h *clone) {
		h.write("tenon.yaml", "x-a: &a {command: sh, args: [run.sh], lifecycle: eager}\nservers:\n  script: {<<: *a}\n")
	}},
	"a merge key shows what runs": {args: []string{"trust", "show"}, says: "sh run.sh", want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "x-a: &a {command: sh, args: [run.sh]}\nx-b: &b {command: \"true\"}\nservers:\n  script: {<<: [*a, *b]}\n")
	}},
	"two documents": {want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "limits: {max_turns: 3}\n---\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"servers twice": {want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: \"true\"}}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"a binary command": {want: anyStatus, args: []string{"trust", "show"}, absent: "c2g=", do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {command: !!binary c2g=, args: [run.sh]}}\n")
	}},
	"an escaped key": {args: []string{"trust", "show"}, says: "sh run.sh", want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "servers: {script: {\"comm\\u0061nd\": sh, args: [run.sh]}}\n")
	}},
	"a bomb of aliases": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		text := "x-a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
		for i := 1; i < 10; i++ {
			text += fmt.Sprintf("x-a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
		}
		h.write("tenon.yaml", text+"servers: {script: {command: sh, args: *a9}}\n")
	}},
	"an alias of itself": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		h.write("tenon.yaml", "servers: &a {script: {command: sh, args: [run.sh], env: *a}}\n")
	}},
	"deep nesting": {want: anyStatus, args: []string{"trust", "show"}, do: func(h *clone) {
		h.write("tenon.yaml", "x: "+strings.Repeat("[", 100000)+"\n")
	}},
	"UTF-16": {want: anyStatus, do: func(h *clone) {
		var b bytes.Buffer
		b.WriteString("\xff\xfe")
		for _, c := range "servers: {script: {command: sh, args: [run.sh]}}\n" {
			b.WriteRune(c)
			b.WriteByte(0)
		}
		h.write("tenon.yaml", b.String())
	}},
	"mcp.json has a member twice": {args: []string{"trust", "show"}, want: anyStatus, do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("mcp.json", `{"mcpServers": {"script": {"command": "true"}}, "mcpServers": {"script": {"command": "sh", "args": ["run.sh"]}}}`)
	}, check: func(h *clone, stdout, stderr string) {
		if strings.Contains(stdout, "true") && !strings.Contains(stdout, "run.sh") {
			h.t.Errorf("it shows one command and runs another: %s%s", stdout, stderr)
		}
	}},
	"mcp.json in other letters": {args: []string{"servers", "list", "--no-connect"}, want: anyStatus, do: func(h *clone) {
		h.do(os.Remove("tenon.yaml"))
		h.write("mcp.json", `{"mcpServers": {"script": {"command": "true", "COMMAND": "evil-command"}}}`)
	}, absent: "\tevil-command"},
	"trust.projects of the project": {want: anyStatus, do: func(h *clone) {
		h.write("tenon.yaml", "trust: {projects: [{path: "+h.dir+"}]}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"trust.projects of a file that is named": {want: exitUsage, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, do: func(h *clone) {
		h.write("tenon.yaml", "trust: {projects: [{path: "+h.dir+"}]}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"trust.forbid of the project": {want: exitUsage, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, do: func(h *clone) {
		h.write("tenon.yaml", "trust: {forbid: [yes]}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"store.key of the project": {want: exitUsage, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, do: func(h *clone) {
		h.write("key", strings.Repeat("k", 64))
		h.write("tenon.yaml", "store: {key: kkkk}\nsecrets: {kkkk: {file: key}}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
	"serve.allow_server_edit of the project": {want: exitUsage, args: []string{"servers", "test", "script", "-c", "tenon.yaml"}, do: func(h *clone) {
		h.write("tenon.yaml", "serve: {allow_server_edit: true}\nservers: {script: {command: sh, args: [run.sh]}}\n")
	}},
}

// planted is an attack by a link in the project that leads to a file of the user.
func planted(link string, args ...string) attack {
	return attack{want: anyStatus, args: args, do: func(h *clone) {
		h.do(os.WriteFile(h.beside("victim"), []byte("precious\n"), 0o600))
		h.do(os.MkdirAll(filepath.Dir(link), 0o700))
		h.do(os.RemoveAll(link))
		h.do(os.Symlink(h.beside("victim"), link))
	}, check: unchangedVictim}
}

func unchangedVictim(h *clone, stdout, stderr string) {
	if b, err := os.ReadFile(h.beside("victim")); err != nil || string(b) != "precious\n" {
		h.t.Errorf("the file of the user is now %q, %v: %s%s", b, err, stdout, stderr)
	}
}

// linkAttacks try to make a command write outside of the folder.
var linkAttacks = map[string]attack{
	"init through a link":           planted("tenon.yaml", "init"),
	"init --force through a link":   planted("tenon.yaml", "init", "--force"),
	"servers add through a link":    planted("tenon.yaml", "servers", "add", "x", "http://127.0.0.1:1/mcp"),
	"config import through a link":  planted("tenon.yaml", "config", "import", "call.json", "--from", "claude", "--write"),
	"init with a linked .gitignore": withoutFile(planted(".gitignore", "init")),
	"init with a linked .env":       withoutFile(planted(".env", "init")),
	"run with a linked store":       trusted(planted(".tenon/tenon.db", "run", "--model", "script:script.yaml", "hi")),
	"run with a linked WAL":         trusted(planted(".tenon/tenon.db-wal", "run", "--model", "script:script.yaml", "hi")),
	"run with a linked journal":     trusted(planted(".tenon/tenon.db-journal", "run", "--model", "script:script.yaml", "hi")),
	"run with a linked .gitignore":  trusted(planted(".tenon/.gitignore", "run", "--model", "script:script.yaml", "hi")),
	"a log that is a link":          trusted(planted(".tenon/logs/script.log", "servers", "test", "script"), true),
	"the folder .tenon is a link": {want: anyStatus, args: []string{"run", "--model", "script:script.yaml", "hi"}, do: func(h *clone) {
		h.do(os.Mkdir(h.beside("elsewhere"), 0o700))
		h.trust()
		h.do(os.Symlink(h.beside("elsewhere"), ".tenon"))
	}, check: func(h *clone, _, stderr string) {
		if list, _ := os.ReadDir(h.beside("elsewhere")); len(list) > 0 {
			h.t.Errorf("the store is outside of the project: %v %s", list, stderr)
		}
	}},
	"store.path through a linked folder": {want: anyStatus, args: []string{"run", "--model", "script:script.yaml", "hi"}, do: func(h *clone) {
		h.do(os.Mkdir(h.beside("elsewhere"), 0o700))
		h.do(os.Symlink(h.beside("elsewhere"), "data"))
		h.write("tenon.yaml", "store: {path: data/t.db}\n")
		_, _, _ = runHere(h.t, "trust", "--trust")
	}, check: func(h *clone, _, stderr string) {
		if list, _ := os.ReadDir(h.beside("elsewhere")); len(list) > 0 {
			h.t.Errorf("the store is outside of the project: %v %s", list, stderr)
		}
	}},
	"store.path is the user's home": {want: anyStatus, args: []string{"run", "--model", "script:script.yaml", "hi"}, do: func(h *clone) {
		h.write("tenon.yaml", "store: {path: \"${HOME}/t.db\"}\n")
		_, _, _ = runHere(h.t, "trust", "--trust")
	}, check: func(h *clone, _, stderr string) {
		if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "t.db")); err == nil {
			h.t.Errorf("the store is in the home folder: %s", stderr)
		}
	}},
	"instructions link to the user's key": {want: anyStatus, args: []string{"trust", "show"}, says: "id_rsa", do: func(h *clone) {
		h.do(os.WriteFile(h.beside("id_rsa"), []byte("KEY"), 0o600))
		h.do(os.Symlink(h.beside("id_rsa"), "notes.txt"))
		h.write("tenon.yaml", "agents: {default: {instructions: {file: notes.txt}}}\n")
	}, absent: "KEY"},
	"an env_file links to the user's": {want: anyStatus, args: []string{"trust", "show"}, says: "credentials", do: func(h *clone) {
		h.do(os.WriteFile(h.beside("credentials"), []byte("A=KEY-0123456789\n"), 0o600))
		h.do(os.Remove("server.env"))
		h.do(os.Symlink(h.beside("credentials"), "server.env"))
		h.write("tenon.yaml", "servers: {script: {command: sh, args: [run.sh], env_file: server.env}}\n")
	}, absent: "KEY-0123456789"},
	".env links to the user's": {want: anyStatus, args: []string{"trust", "show"}, says: "credentials", do: func(h *clone) {
		h.do(os.WriteFile(h.beside("credentials"), []byte("A=KEY-0123456789\n"), 0o600))
		h.do(os.Remove(".env"))
		h.do(os.Symlink(h.beside("credentials"), ".env"))
		h.write("tenon.yaml", "servers: {script: {url: \""+h.url+"/${A}\"}}\n")
	}},
	"a hard link to the script changes": {want: exitWaiting, do: func(h *clone) {
		h.do(os.Link("run.sh", h.beside("twin.sh")))
		h.trust()
		h.do(os.WriteFile(h.beside("twin.sh"), []byte(h.evil()), 0o600))
	}},
	"completion in a folder with links": {want: anyStatus, args: []string{cobra.ShellCompRequestCmd, "runs", "show", ""}, do: func(h *clone) {
		h.do(os.WriteFile(h.beside("victim"), []byte("precious\n"), 0o600))
		h.write(".tenon/x", "")
		h.do(os.Symlink(h.beside("victim"), ".tenon/tenon.db"))
	}, check: unchangedVictim},
}

// withoutFile removes the project's file.
func withoutFile(a attack) attack {
	do := a.do
	a.do = func(h *clone) { do(h); h.do(os.Remove("tenon.yaml")) }
	return a
}

// trusted returns the attack with the project trusted first.
func trusted(a attack, ran ...bool) attack {
	do := a.do
	a.do = func(h *clone) { h.trust(); do(h) }
	a.ran = len(ran) > 0
	return a
}

// explained checks what policy explain prints for a tool under the user's file and a project's file.
func explained(own, project, tool, says string) attack {
	return attack{want: anyStatus, args: []string{"policy", "explain", tool}, says: says, do: func(h *clone) {
		h.own(own)
		h.write("tenon.yaml", project)
		_, _, _ = runHere(h.t, "trust", "--trust")
	}}
}

const ownServer = "servers: {bank: {command: \"true\"}}\n"

const ownBank = "servers: {bank: {command: \"true\"}}\ntools: {pay: {server: bank}}\n"
