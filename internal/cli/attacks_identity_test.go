package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// allows returns a project's file with the server t and default values of the policy.
func (r *raid) allows(defaults string) string {
	return "version: 1\nservers: {t: {url: \"" + r.url + "\"}}\npolicy: {defaults: {" + defaults + "}}\n"
}

// absent checks that a file was not created.
func (r *raid) absent(path string) {
	r.t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		r.t.Errorf("%s was made", path)
	}
}

// folderServer writes a project whose server is started by a script in its folder.
func (r *raid) folderServer(dir, effects string) {
	r.t.Helper()
	r.write(dir+"/tenon.yaml", "version: 1\nservers: {t: {command: sh, args: [server.sh]}}\ntools: {add: {server: t, policy: {approval: always}}}\n")
	r.write(dir+"/add.yaml", r.read("add.yaml"))
	r.write(dir+"/server.sh", "exec tenon testserver --stdio --only add --effects "+filepath.Join(r.root, effects)+"\n")
}

var folderAttempts = map[string]attempt{
	"a grant of a relative command in another folder of one store": {calls: 1, do: func(r *raid) {
		r.folderServer(r.dir, "effects")
		r.folderServer(r.root+"/other", "effects2")
		home := r.root + "/store"
		r.want(exitWaiting, "run", "--home", home, "--model", "script:add.yaml", "go")
		_, text := r.tenon("runs", "list", "--home", home, "-o", "json")
		id := regexp.MustCompile(`run_\w+`).FindString(text)
		r.want(exitOK, "approvals", "allow", id, "--always", "--home", home)
		r.want(exitOK, "runs", "resume", id, "--home", home)
		r.t.Chdir(r.root + "/other")
		r.want(exitWaiting, "run", "--home", home, "--model", "script:add.yaml", "go")
		if r.calls("effects2") != 0 {
			r.t.Error("the grant of one folder's server counts for another's")
		}
	}},
	"the own store in a fork of the project with another script": {calls: 1, do: func(r *raid) {
		r.folderServer(r.dir, "effects")
		r.allowed("--always")
		r.folderServer(r.root+"/other", "effects2")
		r.copyStore(".tenon", "../other/.tenon")
		r.t.Chdir(r.root + "/other")
		r.ask(exitWaiting, "add.yaml")
		if r.calls("effects2") != 0 {
			r.t.Error("the grant of one folder's server counts for another's")
		}
	}},
}

func TestAttacksOnFolders(t *testing.T) { raids(t, folderAttempts) }

// TestAttacksOnIdentity tries to get around the rules of a server or tool with other names, tables and arguments.
func TestAttacksOnIdentity(t *testing.T) { raids(t, identityAttempts) }

// denied returns a project's file whose rule denies the tool add of the server entry bank.
func (r *raid) denied(more string) string {
	return "version: 1\nservers:\n  bank: {url: \"" + r.url + "\", load_tools: true}\n" + more +
		"policy: {defaults: {approval: never}, rules: [{when: 'server.host == \"127.0.0.1\" && tool.remote_name == \"add\"', verdict: deny}]}\n"
}

var identityAttempts = map[string]attempt{
	"two entries whose exposed names would be one": {do: func(r *raid) {
		r.write("tenon.yaml", r.denied("  Bank: {url: \""+r.url+"\"}\n"))
		r.tenon("run", "--model", "script:add.yaml", "--yes", "go")
		r.write("b.yaml", raidSteps(`{name: bank_add, arguments: {a: 1, b: 2}}, {name: Bank_add, arguments: {a: 1, b: 2}}, {name: Bank__add, arguments: {a: 1, b: 2}}`))
		r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
	}},
	"a second entry with another spelling of the host": {do: func(r *raid) {
		r.write("tenon.yaml", r.denied("  b2: {url: \""+strings.Replace(r.url, "127.0.0.1", "127.0.0.1.", 1)+"\"}\n  b3: {url: \""+strings.Replace(r.url, "127.0.0.1", "0x7f.1", 1)+
			"\"}\n  b4: {url: \""+strings.Replace(r.url, "127.0.0.1", "2130706433", 1)+"\"}\n  b5: {url: \""+strings.Replace(r.url, "127.0.0.1", "[::ffff:127.0.0.1]", 1)+"\"}\n"))
		for _, e := range []string{"b2", "b3", "b4", "b5"} {
			r.write("b.yaml", raidSteps(`{name: `+e+`_add, arguments: {a: 1, b: 2}}`))
			r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
		}
	}},
	"an ad-hoc URL is the entry": {do: func(r *raid) {
		home, err := os.UserHomeDir()
		if err != nil {
			r.t.Fatal(err)
		}
		// The rules of a project do not hold for a server of the command line; the user's own do.
		r.write(filepath.Join(home, ".config", "tenon", "config.yaml"), "version: 1\n"+r.denied("")[strings.Index(r.denied(""), "policy:"):])
		for _, yes := range [][]string{nil, {"--yes"}} {
			r.want(exitDenied, append([]string{"tools", "call", "add", "a:=1", "b:=2", "--url", r.url}, yes...)...)
		}
	}},
	"an entry of tools renames the tool": {do: func(r *raid) {
		r.write("tenon.yaml", r.denied("tools: {nice: {server: bank, remote_name: add, annotations: {read_only: true}, policy: {approval: never}}}\n"))
		r.write("b.yaml", raidSteps(`{name: nice, arguments: {a: 1, b: 2}}`))
		r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
	}},
	"an http tool takes the name of a denied tool": {do: func(r *raid) {
		r.write("tenon.yaml", r.denied("tools: {add: {kind: http, description: x, request: {method: POST, url: \""+r.url+"\", body: {a: 1}}}}\n"))
		r.tenon("run", "--model", "script:add.yaml", "go")
	}},
	"tool.name of a renamed tool": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\"}}\ntools: {nice: {server: bank, remote_name: add}}\npolicy: {rules: [{when: 'tool.name == \"add\"', verdict: deny}]}\n")
		r.want(exitUsage, "run", "--model", "script:add.yaml", "--yes", "go")
	}},
	"an exclude in another case": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\", exclude: [add]}}\npolicy: {defaults: {approval: never}}\n")
		r.write("b.yaml", raidSteps(`{name: Add, arguments: {a: 1, b: 2}}, {name: bank_add, arguments: {a: 1, b: 2}}, {name: "add ", arguments: {a: 1, b: 2}}, {name: bank.add, arguments: {a: 1, b: 2}}`))
		r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
		r.tenon("tools", "call", "bank.add", "a:=1", "b:=2", "--yes")
	}},
	"an excluded tool comes back as an entry of tools": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\", exclude: [add]}}\ntools: {add: {server: bank}, plus: {server: bank, remote_name: add}}\npolicy: {defaults: {approval: never}}\n")
		r.write("b.yaml", raidSteps(`{name: add, arguments: {a: 1, b: 2}}, {name: plus, arguments: {a: 1, b: 2}}`))
		r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
	}},
	"an agent's exclude and a second entry of the target": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\"}, b2: {url: \""+r.url+"\", enabled: false}}\nagents: {default: {tools: {exclude: [bank/add]}}}\npolicy: {defaults: {approval: never}}\n")
		r.write("b.yaml", raidSteps(`{name: add, arguments: {a: 1, b: 2}}, {name: bank_add, arguments: {a: 1, b: 2}}`))
		r.tenon("run", "--model", "script:b.yaml", "--yes", "go")
	}},
	"an agent's exclude as tenon prints the tool": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\"}}\nagents: {default: {tools: {exclude: [bank.add]}}}\npolicy: {defaults: {approval: never}}\n")
		r.tenon("run", "--model", "script:add.yaml", "--yes", "go")
	}},
	"an agent's exclude as a glob of what tenon prints": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\"}}\nagents: {default: {tools: {exclude: ['bank.*']}}}\npolicy: {defaults: {approval: never}}\n")
		r.tenon("run", "--model", "script:add.yaml", "--yes", "go")
	}},
	"an agent that is handed to gets what the caller may not": {do: func(r *raid) {
		r.write("tenon.yaml", "version: 1\nservers: {bank: {url: \""+r.url+"\"}}\nagents: {default: {handoffs: [other]}, other: {description: x}}\npolicy: {defaults: {approval: always}}\n")
		r.write("b.yaml", "steps: [{calls: [{name: handoff_to_other, arguments: {}}]}, {calls: [{name: add, arguments: {a: 1, b: 2}}]}, {text: done}]\n")
		r.tenon("run", "--model", "script:b.yaml", "go")
	}},
	"keys that differ by case":              {calls: 2, do: sends(`{name: add, arguments: {a: 1, b: 2, A: 5}}`)},
	"keys that differ by width":             {calls: 2, do: sends(`{name: add, arguments: {a: 1, b: 2, "ａ": 5}}`)},
	"keys with a trailing NUL":              {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\u0000":5}'}`)},
	"keys with an invisible character":      {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\u200b":5}'}`)},
	"keys with a soft hyphen":               {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\u00ad":5}'}`)},
	"keys with a tag character":             {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\udb40\udc41":5}'}`)},
	"keys with a variation selector":        {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\ufe0f":5}'}`)},
	"keys with a mongolian vowel mark":      {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\u180e":5}'}`)},
	"keys with a Hangul filler":             {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\u3164":5}'}`)},
	"keys with a lone surrogate":            {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a\ud800":5}'}`)},
	"keys in mathematical letters":          {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"\ud835\udc1a":5}'}`)},
	"keys twice, the second spelled in \\u": {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"\u0061":9999}'}`)},
	"keys twice":                            {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"a":9999}'}`)},
	"a value after the object":              {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2} {"a":9999,"b":2}'}`)},
	"keys with a byte order mark":           {calls: 2, do: sends(`{name: add, raw: '{"a":1,"b":2,"\ufeffa":5}'}`)},
}

// sends tries arguments under a rule that only allows small numbers. Before and after it makes a call with allowed
// arguments; these two calls are counted in the table of attempts.
func sends(call string) func(r *raid) {
	return func(r *raid) {
		r.write("tenon.yaml", r.config("policy: {rules: [{when: 'has(args.a) && args.a > 100', verdict: deny}]}\n"))
		const plain = "{calls: [{name: add, arguments: {a: 1, b: 2}}]}"
		r.write("b.yaml", "steps: ["+plain+", {calls: ["+call+"]}, "+plain+", {text: done}]\n")
		r.want(exitOK, "run", "--model", "script:b.yaml", "--yes", "go")
	}
}
