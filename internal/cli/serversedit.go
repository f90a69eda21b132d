package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// The scopes of an entry: the file that contains it.
const (
	scopeProject = "project"
	scopeUser    = "user"
)

// scope is the flag --scope.
type scope string

func (s *scope) String() string { return string(*s) }
func (s *scope) Type() string   { return "scope" }

func (s *scope) Set(v string) error {
	switch v {
	case scopeProject, scopeUser:
		*s = scope(v)
		return nil
	case "local":
		return tenon.Errorf(tenon.CodeInvalid, "scope local does not exist; use project "+
			"(tenon.yaml, which others see) or user (your own file, for all projects)")
	}
	return tenon.Errorf(tenon.CodeInvalid, "must be project or user")
}

func (s *scope) flag(cmd *cobra.Command, def string) {
	cmd.Flags().VarP(s, "scope", "s", "`SCOPE` of the entry: project (tenon.yaml) or user (your own file, in all "+
		"projects)"+def)
}

// serverEntry holds the flags of servers add.
type serverEntry struct {
	scope              scope
	url, transport     string
	env, headers       []string
	cwd, envFile       string
	bearer, clientID   string
	callback           int
	title, description string
	force              bool
}

func newServersAdd(a *app) *cobra.Command {
	var e serverEntry
	cmd := &cobra.Command{
		Use:   "add NAME URL | add NAME -- COMMAND ARGS...",
		Short: "Write a server into tenon.yaml",
		Long: "Sets the entry servers.NAME of the configuration file, which is created if it does not exist.\n" +
			"Comments and order of the file are kept, and a change that would not load is not written. The\n" +
			"command follows --. ${VAR} in a value is written as it is and expanded when the server is used;\n" +
			"--env NAME without a value passes the variable on. Adding the entry is your agreement to it: tenon\n" +
			"asks no question about it.",
		Example: "  tenon servers add files -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  tenon servers add -e TOKEN github -- npx -y @modelcontextprotocol/server-github\n" +
			"  tenon servers add --transport http cloud https://mcp.example.com/mcp --header 'Authorization: Bearer " +
			"${TOKEN}'",
		Args: args(1, -1, "the server's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.flagsOfCommand(cmd, args); err != nil {
				return err
			}
			entry, err := e.entry(cmd, args)
			if err == nil {
				err = config.CheckName("server", args[0])
			}
			if err != nil {
				return err
			}
			return a.addServer(cmd.Context(), e, config.Change{Section: "servers", Name: args[0], Entry: entry,
				Add: !e.force})
		},
	}
	cmd.SetFlagErrorFunc(a.commandFlag)
	f := cmd.Flags()
	e.scope.flag(cmd, " (default project)")
	f.StringVar(&e.url, "url", "", "`URL` of the server, the same as the argument URL")
	f.VarP(&enum{&e.transport, append([]string{servers.TransportStdio}, config.URLTransports()...)}, "transport", "t",
		"`TRANSPORT`: stdio, http, sse, websocket, jsonrpc, auto (default: by what follows)")
	f.StringArrayVarP(&e.env, "env", "e", nil, "variable `NAME=VALUE` of the server's process; may be repeated")
	f.StringArrayVarP(&e.headers, "header", "H", nil, "HTTP header `NAME: VALUE`; may be repeated")
	f.StringVar(&e.cwd, "cwd", "", "working `FOLDER` of the process (default: the folder of the file)")
	f.StringVar(&e.envFile, "env-file", "", "`FILE` of lines NAME=VALUE for the process")
	f.StringVar(&e.bearer, "bearer-token-env-var", "", "`VARIABLE` that holds a token, sent as Authorization: Bearer")
	f.StringVar(&e.clientID, "client-id", "", "`ID` of a registered OAuth client")
	f.IntVar(&e.callback, "callback-port", 0, "`PORT` of the OAuth redirect to this machine")
	f.StringVar(&e.title, "title", "", "shown `NAME`")
	f.StringVar(&e.description, "description", "", "shown `TEXT`")
	f.BoolVar(&e.force, "force", false, "replace an entry of that name")
	return cmd
}

// commandFlag describes an unknown flag. If a command precedes it, the flag is probably meant for the command.
func (a *app) commandFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if got := cmd.Flags().Args(); errors.As(err, &unknown) && len(got) > 1 && !strings.Contains(got[1], "://") {
		return tenon.Errorf(tenon.CodeInvalid, "%s has no %s; write -- before a command that has flags: %s",
			cmd.CommandPath(), dashed(unknown), shellLine(withDashes(a.argv, got[0], got[1])))
	}
	return flagError(cmd, err)
}

// flagsOfCommand refuses flags after a command without --. Some have the name of a flag of tenon, so that tenon would
// take them from the command.
func (a *app) flagsOfCommand(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || cmd.ArgsLenAtDash() >= 0 || strings.Contains(args[1], "://") || isAddress(args[1]) {
		return nil
	}
	line := withDashes(a.argv, args[0], args[1])
	at := slices.Index(line, "--")
	if !slices.ContainsFunc(line[at+2:], func(word string) bool { return len(word) > 1 && word[0] == '-' }) {
		return nil
	}
	return tenon.Errorf(tenon.CodeInvalid, "a flag follows '%s'; write -- before a command that has flags: %s (flags "+
		"of tenon come before it)", tenon.Visible(args[1]), shellLine(line))
}

// withDashes returns a whole command line with -- before the word command, which follows the word name.
func withDashes(line []string, name, command string) []string {
	at := slices.Index(line, name) + 1 // the command may be the same word
	at += max(slices.Index(line[at:], command), 0)
	return slices.Concat([]string{"tenon"}, line[:at], []string{"--"}, line[at:])
}

// entry builds the entry from the flags and arguments.
func (e *serverEntry) entry(cmd *cobra.Command, args []string) (config.Entry, error) {
	target := args[1:]
	dash := cmd.ArgsLenAtDash()
	byFlag := cmd.Flags().Changed("url")
	if byFlag {
		if len(target) > 0 {
			return nil, usage(cmd, "--url is given, and '%s': a server has a URL or a command", target[0])
		}
		target = []string{e.url}
	}
	switch {
	case len(target) == 0 || strings.TrimSpace(target[0]) == "":
		return nil, usage(cmd, "a URL is missing, or a command behind --")
	case dash > 1 && len(args) > dash:
		return nil, usage(cmd, "'%s' is before --; the command follows --", args[1])
	}
	remote := dash < 0 && strings.Contains(target[0], "://")
	switch {
	case dash < 0 && isWrongURL(target[0]):
		return nil, usage(cmd, "'%s' is not a URL: it must begin with https:// or http://, or with wss:// or ws://",
			target[0])
	case byFlag && !remote:
		return nil, usage(cmd, "'%s' is not a URL: it must begin with https:// or http://, or with wss:// or ws://",
			target[0])
	case dash < 0 && !remote && isAddress(target[0]):
		return nil, usage(cmd, "'%s' is not a URL: it must begin with https:// or http:// (--url %s); a command "+
			"follows --", target[0], shellWord("https://"+target[0]))
	case !remote && strings.HasPrefix(target[0], "-"):
		return nil, usage(cmd, "'%s' is not a command: after -- the command comes first, then its flags", target[0])
	}
	if remote && len(target) > 1 {
		return nil, usage(cmd, "'%s' is too much", target[1])
	}
	if stdio := e.transport == servers.TransportStdio; e.transport != "" && stdio == remote {
		return nil, usage(cmd, "--transport %s does not go with '%s'", e.transport, target[0])
	}
	var entry config.Entry
	put := func(key string, v any) { entry = append(entry, config.Field{Key: key, Value: v}) }
	word := func(key, v string) {
		if v != "" {
			put(key, v)
		}
	}
	word("title", e.title)
	word("description", e.description)
	word("transport", e.transport)
	if remote {
		return entry, e.remote(cmd, target[0], &entry)
	}
	for _, name := range []string{"header", "bearer-token-env-var", "client-id", "callback-port"} {
		if cmd.Flags().Changed(name) {
			return nil, usage(cmd, "--%s needs a URL", name)
		}
	}
	put("command", target[0])
	if len(target) > 1 {
		put("args", target[1:])
	}
	word("cwd", e.cwd)
	word("env_file", e.envFile)
	env, err := pairs(cmd, "env", e.env, "=")
	if err == nil && env != nil {
		put("env", env)
	}
	return entry, err
}

// isWrongURL reports whether a word is meant as a URL, but has another scheme, or lacks a part of ://.
func isWrongURL(word string) bool {
	scheme, _, ok := strings.Cut(word, "://")
	if ok {
		return !slices.Contains(urlSchemes, strings.ToLower(scheme)) && !strings.Contains(scheme, "$")
	}
	scheme, rest, _ := strings.Cut(strings.ToLower(word), "/")
	if rest == "" || !slices.Contains(urlSchemes, strings.TrimSuffix(scheme, ":")) {
		return false
	}
	_, err := os.Stat(word)
	return err != nil
}

// urlSchemes are the schemes of servers' URLs.
var urlSchemes = []string{"https", "http", "wss", "ws"}

// isAddress reports whether a word is a URL without its scheme, such as example.com/mcp, example.com or localhost:8000,
// and not the name of a file or of a program.
func isAddress(word string) bool {
	host, path, _ := strings.Cut(word, "/")
	name, port, hasPort := strings.Cut(host, ":")
	_, err := strconv.ParseUint(port, 10, 16)
	switch {
	case name == "" || strings.Trim(name, ".") == "" || strings.ContainsAny(word, ` \`):
		return false
	case hasPort && err != nil:
		return false
	case !hasPort && path == "":
		return isHost(name)
	case !hasPort && name != "localhost" && !strings.Contains(strings.Trim(name, "."), "."):
		return false
	}
	_, err = os.Stat(word)
	return err != nil
}

// isHost reports whether a word is the name or the address of a host, and not of a file or of a program.
func isHost(word string) bool {
	end := strings.ToLower(word[strings.LastIndexByte(word, '.')+1:])
	isName := len(end) >= 2 && len(end) < len(word) && !slices.Contains(programEnds, end) &&
		!strings.ContainsFunc(end, func(r rune) bool { return r < 'a' || r > 'z' })
	if word != "localhost" && net.ParseIP(word) == nil && !isName {
		return false
	}
	if _, err := os.Stat(word); err == nil {
		return false
	}
	_, err := exec.LookPath(word)
	return err != nil
}

// programEnds are ends of the names of programs that are not there, or not there yet.
var programEnds = []string{"bash", "bat", "bin", "cjs", "cmd", "exe", "jar", "js", "lua", "mjs", "php", "phar",
	"pl", "ps", "py", "pyz", "rb", "sh", "ts", "zsh"}

func (e *serverEntry) remote(cmd *cobra.Command, url string, entry *config.Entry) error {
	for _, name := range []string{"env", "env-file", "cwd"} {
		if cmd.Flags().Changed(name) {
			return usage(cmd, "--%s needs a command behind --", name)
		}
	}
	put := func(key string, v any) { *entry = append(*entry, config.Field{Key: key, Value: v}) }
	put("url", url)
	headers, err := pairs(cmd, "header", e.headers, ":")
	if err != nil {
		return err
	}
	if headers != nil {
		put("headers", headers)
	}
	oauth := e.clientID != "" || e.callback != 0
	switch {
	case e.bearer != "" && oauth:
		return usage(cmd, "--bearer-token-env-var does not go with OAuth")
	case e.bearer != "":
		put("auth", config.Fields{{Key: "type", Value: servers.AuthBearer},
			{Key: "secret", Value: config.Fields{{Key: "env", Value: e.bearer}}}})
	case oauth:
		auth := config.Fields{{Key: "type", Value: servers.AuthOAuth}}
		if e.clientID != "" {
			auth = append(auth, config.Field{Key: "client_id", Value: e.clientID})
		}
		if e.callback != 0 {
			auth = append(auth, config.Field{Key: "callback_port", Value: e.callback})
		}
		put("auth", auth)
	}
	return nil
}

// pairs parses the values of a flag that contains names and values. A variable without a value refers to the variable
// in the environment of tenon.
func pairs(cmd *cobra.Command, flag string, list []string, sep string) (config.Fields, error) {
	var out config.Fields
	for _, p := range list {
		k, v, ok := strings.Cut(p, sep)
		k = strings.TrimSpace(k)
		if sep == ":" {
			v = strings.TrimSpace(v)
		}
		if !ok && sep == "=" {
			v, ok = "${"+k+"}", k != ""
		}
		if !ok || k == "" || sep == "=" && strings.ContainsFunc(k, unicode.IsSpace) {
			return nil, usage(cmd, "--%s '%s' is not of the form NAME%sVALUE", flag, p, sep)
		}
		if slices.ContainsFunc(out, func(f config.Field) bool { return f.Key == k }) {
			return nil, usage(cmd, "--%s names %s twice", flag, k)
		}
		out = append(out, config.Field{Key: k, Value: v})
	}
	return out, nil
}

// addServer writes entries and records the user's consent to them.
func (a *app) addServer(ctx context.Context, e serverEntry, changes ...config.Change) error {
	p, trusted, err := a.ownEdit(ctx, a.configOptions(), config.Edits{Changes: changes, User: e.scope == scopeUser,
		Create: true})
	if errorCode(err) == tenon.CodeConflict && !e.force {
		return fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	cfg := p.Config
	name := changes[0].Name
	path := "servers." + name
	for _, w := range cfg.Warnings {
		if w.Path == path || strings.HasPrefix(w.Path, path+".") {
			a.note("%s", w.Error())
		}
	}
	if trusted { // else the store is not opened
		if err := host.ForgetPins(ctx, host.Config{Config: cfg, Home: a.home, LookupEnv: a.lookupEnv, ShortLived: true},
			name); err != nil {
			return err
		}
	}
	if program := missingProgram(cfg.Servers[name]); program != "" {
		a.note("'%s' is not found in PATH, so the server cannot start yet: install it, or correct %s.command in %s",
			program, path, p.Written)
	} else if file := missingFile(cfg.Servers[name], filepath.Dir(p.Written)); file != "" {
		a.note("there is no file '%s', so the server cannot start yet; correct %s.command in %s", file, path, p.Written)
	}
	return a.did(map[string]any{"file": p.Written, "server": name}, "Added '%s' to %s; try: tenon servers test %s",
		name, p.Written, name)
}

// missingFile returns the file of an entry whose command is a path, if there is no such file. dir is the folder of the
// configuration file.
func missingFile(c servers.Config, dir string) string {
	if !strings.ContainsAny(c.Command, `/\`) || strings.ContainsAny(c.Command+c.Cwd, "$~") {
		return ""
	}
	file := c.Command
	for _, folder := range []string{c.Cwd, dir} {
		if !filepath.IsAbs(file) {
			file = filepath.Join(folder, file)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return file
}

// missingProgram returns the program of an entry if it is a plain name that PATH does not have. A path depends on the
// server's folder, and PATH may be one of its variables.
func missingProgram(c servers.Config) string {
	if _, own := c.Env["PATH"]; own || c.EnvFile != "" || c.Command == "" || strings.ContainsAny(c.Command, `/\$`) {
		return ""
	}
	if _, err := exec.LookPath(c.Command); err != nil {
		return c.Command
	}
	return ""
}

func newServersAddJSON(a *app) *cobra.Command {
	var e serverEntry
	cmd := &cobra.Command{
		Use:   "add-json NAME JSON",
		Short: "Write a server into tenon.yaml, given as .mcp.json JSON",
		Long: "Sets the entry servers.NAME like servers add. JSON is an object in the form of mcpServers in\n" +
			".mcp.json, as the documentation of many servers shows it, also inside {\"mcpServers\": …}.",
		Example: "  tenon servers add-json files " +
			"'{\"command\":\"npx\",\"args\":[\"-y\",\"@modelcontextprotocol/server-filesystem\",\".\"]}'",
		Args: args(2, 2, "the server's name, or its JSON,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.CheckName("server", args[0]); err != nil {
				return err
			}
			change, err := config.FromJSON(args[0], []byte(args[1]))
			if err != nil {
				return err
			}
			change.Add = !e.force
			return a.addServer(cmd.Context(), e, change)
		},
	}
	e.scope.flag(cmd, " (default project)")
	cmd.Flags().BoolVar(&e.force, "force", false, "replace an entry of that name")
	return cmd
}

func newServersRemove(a *app) *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from tenon.yaml",
		Long: "Removes the entry servers.NAME from the project's configuration file, or from your own file if the\n" +
			"project has no such entry. Comments and order of the other entries are kept.",
		Example: "  tenon servers remove github",
		Args:    args(1, 1, "the server's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			edits := config.Edits{Changes: []config.Change{{Section: "servers", Name: args[0]}}, User: s == scopeUser}
			p, _, err := a.ownEdit(cmd.Context(), a.configOptions(), edits)
			if tenon.ErrorCode(err) == tenon.CodeNotFound && s == "" {
				edits.User = true
				if own, _, e := a.ownEdit(cmd.Context(), a.configOptions(),
					edits); tenon.ErrorCode(e) != tenon.CodeNotFound {
					p, err = own, e
				}
			}
			if tenon.ErrorCode(err) == tenon.CodeNotFound {
				return a.serverOfTable(cmd.Context(), args[0], err)
			}
			if err != nil {
				return err
			}
			return a.did(map[string]any{"file": p.Written, "server": args[0]}, "Removed '%s' from %s", args[0],
				p.Written)
		},
	}
	s.flag(cmd, " (default: where it is)")
	return cmd
}

// serverOfTable returns the error for a server that is in no file. If a tool table names the server, the error says so.
func (a *app) serverOfTable(ctx context.Context, name string, missing error) error {
	cfg, err := a.load(ctx, nil)
	if err != nil || cfg.TableOf(name) == "" {
		return missing
	}
	path := cfg.TableOf(name)
	return tenon.Errorf(tenon.CodeNotFound, "server '%s' is not an entry of a file: the table %s of tool_tables names "+
		"it; remove the table from tool_tables, or its rows: tenon tables pick %[2]s "+
		"--where 'server.uri != …' --out FILE",
		tenon.Visible(name), tenon.Visible(path))
}

func newServersGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Show the configuration of a server",
		Long: "Shows the values of one entry as they are written, and the file and line of each. Nothing is\n" +
			"started. Tokens and secrets are not shown. tenon servers test NAME connects to the server.",
		Example: "  tenon servers get github\n  tenon servers get github -o json",
		Args:    args(1, 1, "the server's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.load(cmd.Context(), nil)
			if err != nil {
				return err
			}
			path := "servers." + args[0]
			if _, ok := cfg.Servers[args[0]]; !ok {
				return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", args[0],
					didYouMean(args[0], cfg.AllServerNames()))
			}
			values, err := cfg.Show(path)
			if err != nil {
				return err
			}
			values = slices.DeleteFunc(values, func(v config.Value) bool {
				return v.Origin == "default" &&
					v.Path != path+".transport"
			})
			for i := range values {
				values[i].Path = strings.TrimPrefix(values[i].Path, path+".")
			}
			if a.format == formatJSON {
				return a.printJSON(map[string]any{"name": args[0], "origin": cfg.Origin(path), "values": values})
			}
			return printList(a, values, []string{"key", "value", "origin"}, func(v config.Value) []string {
				return []string{v.Path, v.Value, v.Origin}
			})
		},
	}
}
