package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/trust"
)

// The kinds of items, in the order of the list.
const (
	itemCommand  = "command"   // starts a program
	itemURL      = "url"       // calls an address
	itemSecret   = "secret"    // reads a secret
	itemFile     = "file"      // reads a file outside of the project, or answers from a script
	itemRequest  = "request"   // a tool or a step of a workflow sends an HTTP request
	itemListen   = "listen"    // tenon serve listens
	itemYours    = "yours"     // a tool of a server in the user's own file
	itemLoosens  = "loosens"   // a setting that allows more than the default
	itemReadOnly = "read_only" // a tool that is declared read-only
	itemStore    = "store"     // where runs are kept
)

// itemKinds lists the kinds in the order of the list, with their headings.
var itemKinds = []struct{ kind, heading string }{
	{itemCommand, "Start programs"},
	{itemURL, "Call addresses"},
	{itemSecret, "Use secrets"},
	{itemFile, "Read files"},
	{itemRequest, "Send HTTP requests"},
	{itemListen, "Listen"},
	{itemYours, "Use your own servers"},
	{itemLoosens, "Change settings to allow more"},
	{itemReadOnly, "Call these tools without a question"},
	{itemStore, "Keep data"},
}

// trustItems lists what a configuration would do, most dangerous first. It omits entries of the user's own file, which
// need no consent.
func trustItems(cfg *config.Config, store string) []trust.Item {
	b := &itemBuilder{cfg: cfg}
	b.servers()
	b.secretCommands()
	b.models()
	b.hosted()
	b.addresses()
	b.secrets()
	b.files()
	b.requests()
	b.listen()
	b.yours()
	b.loosens()
	b.readOnly()
	b.masked()
	store = cmp.Or(store, "memory")
	b.list = append(b.list, trust.Item{Kind: itemStore, Path: "store.path",
		Text: "keep runs, approvals and results in " + b.place(store)})
	slices.SortStableFunc(b.list, func(x, y trust.Item) int {
		return cmp.Or(cmp.Compare(rank(x.Kind), rank(y.Kind)), strings.Compare(x.Path, y.Path),
			strings.Compare(x.Text, y.Text))
	})
	return slices.Compact(b.list)
}

// rank returns the position of a kind in the list.
func rank(kind string) int {
	for i, k := range itemKinds {
		if k.kind == kind {
			return i
		}
	}
	return len(itemKinds)
}

// itemBuilder collects the items of a configuration.
type itemBuilder struct {
	cfg  *config.Config
	list []trust.Item
}

// add adds an item, unless it comes from the user's own file.
func (b *itemBuilder) add(kind, path, text string) {
	if !b.cfg.FromUser(path) {
		b.list = append(b.list, trust.Item{Kind: kind, Path: path, Text: text})
	}
}

// place returns a path as the person would type it in the project's folder.
func (b *itemBuilder) place(path string) string {
	if rel, err := filepath.Rel(b.cfg.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// servers adds the programs and addresses of servers.
func (b *itemBuilder) servers() {
	cfg := b.cfg
	for _, name := range slices.Sorted(maps.Keys(cfg.Servers)) {
		s, path := cfg.Servers[name], "servers."+name
		if !s.IsEnabled() {
			continue
		}
		from := ""
		if table := cfg.TableOf(name); table != "" {
			from = ", a server of the table " + b.place(table)
		}
		if s.InferTransport() == servers.TransportStdio {
			line, unbound := b.startLine(path+".command", path+".args", 0, append([]string{s.Command}, s.Args...), path)
			b.add(itemCommand, path, b.startText(path, name, line, s)+from+b.principalText(path, s)+unbound)
			continue
		}
		var secrets []string
		switch s.Auth.Type {
		case "", servers.AuthNone:
		case servers.AuthOAuth:
			secrets = []string{path + ".auth.client_secret", path + ".auth.private_key", path + ".auth.assertion"}
		default:
			secrets = []string{path + ".auth.secret"}
		}
		text := b.callText("call "+b.address(path+".url", s.URL), path+".url", path+".headers",
			slices.Sorted(maps.Keys(s.Headers)), secrets...)
		if s.Auth.Type == servers.AuthOAuth && s.Auth.Issuer != "" {
			text += ", signing in at " + b.address(path+".auth.issuer", s.Auth.Issuer)
		}
		b.add(itemURL, path, text+b.settingsText(path, s)+from+b.principalText(path, s))
	}
}

// startText describes the program of a server and the data that it gets.
func (b *itemBuilder) startText(path, name, line string, s servers.Config) string {
	cfg := b.cfg
	text := "start " + line
	if s.Cwd != "" && s.Cwd != cfg.Dir {
		text += " in " + b.folder(path+".cwd", s.Cwd)
	}
	var given []string
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		given = append(given, b.variable(path+".env."+k, k, s.Env[k]))
	}
	if len(given) > 0 {
		text += ", with " + strings.Join(given, ", ") + " in its environment"
	}
	if names := cfg.EnvFileNames(name); len(names) > 0 {
		text += ", with " + strings.Join(names, ", ") + " from " + b.path(path+".env_file", s.EnvFile)
		if takes := cfg.EnvFileTakes(name); len(takes) > 0 {
			text += " (which takes " + dollars(takes) + ")"
		}
	}
	usual := servers.Config{}.WithDefaults().InheritEnv
	passed := slices.DeleteFunc(slices.Clone(s.InheritEnv), func(n string) bool { return slices.Contains(usual, n) })
	slices.Sort(passed)
	if len(passed) > 0 {
		text += ", handing it " + dollars(passed)
	}
	for i := range s.Args {
		if refs := cfg.SecretRefs(fmt.Sprintf("%s.args[%d]", path, i)); len(refs) > 0 {
			text += ", with " + namedSecrets(cfg, refs) + " in its command line"
		}
	}
	if vars := slices.Concat(cfg.Variables(path+".command"), cfg.Variables(path+".args")); len(vars) > 0 {
		text += ", with " + dollars(vars) + " in its command line"
	}
	return text + b.settingsText(path, s)
}

// settingsText describes the settings that a server gets, with the variables and secrets in them.
func (b *itemBuilder) settingsText(path string, s servers.Config) string {
	if len(s.Settings) == 0 {
		return ""
	}
	text := ", with settings of the project"
	if vars := b.cfg.Variables(path + ".config"); len(vars) > 0 {
		text += ", with " + dollars(vars) + " in them"
	}
	if refs := b.cfg.SecretRefsBelow(path + ".config"); len(refs) > 0 {
		text += ", with " + namedSecrets(b.cfg, refs) + " in them"
	}
	return text
}

// variable describes a variable that a program gets: its value as it is written, or its source.
func (b *itemBuilder) variable(path, name, value string) string {
	if from := from(b.cfg, path); from != "" {
		shown := b.full(path, value)
		if secretName().MatchString(name) {
			shown = b.text(path, value)
		}
		if refs := b.cfg.References(path); len(refs) == 0 || len(refs) == 1 && shown == "${"+refs[0].Name+"}" {
			return name + from
		}
		return name + "=" + shellLine([]string{shown}) + from
	}
	if servers.IsSecretValue(value, name) {
		return name + "=***"
	}
	if _, err := url.Parse(value); err != nil && strings.Contains(value, "://") || strings.ContainsAny(value, "$`") {
		return name + "=" + shellLine([]string{value})
	}
	value = servers.MaskValue(value, name)
	return name + "=" + shellLine([]string{value})
}

// principalText describes the credentials, headers and variables that an entry sets for single principals.
func (b *itemBuilder) principalText(path string, s servers.Config) (text string) {
	for _, who := range slices.Sorted(maps.Keys(s.Principals)) {
		own, at := s.Principals[who], path+".principals."+who
		var given []string
		if source, ok := b.cfg.SecretAt(at + ".auth.secret"); ok {
			given = append(given, sourceText(source))
		}
		for _, k := range slices.Sorted(maps.Keys(own.Headers)) {
			given = append(given, "the header "+k+from(b.cfg, at+".headers."+k))
		}
		for _, k := range slices.Sorted(maps.Keys(own.Env)) {
			given = append(given, "the variable "+b.variable(at+".env."+k, k, own.Env[k]))
		}
		text += "; for " + who + " with " + strings.Join(given, ", ")
	}
	return text
}

// secretCommands adds the programs that print secrets.
func (b *itemBuilder) secretCommands() {
	cfg := b.cfg
	for _, name := range slices.Sorted(maps.Keys(cfg.Secrets)) {
		path := "secrets." + name
		if s := cfg.Secrets[name]; len(s.Command) > 0 {
			line, unbound := b.startLine(path+".command[0]", path+".command", 1, s.Command, path)
			b.add(itemCommand, path, "start "+line+unbound)
		}
	}
	for _, use := range cfg.SecretUses() {
		if command := use.Source.Command; len(command) > 0 && use.Name == "" { // written in place, not a named secret
			line, unbound := b.startLine(use.Path+".command[0]", use.Path+".command", 1, command, use.Path)
			b.add(itemCommand, use.Path, "start "+line+unbound)
		}
	}
}

// models adds the models that get data, and the scripts that replace a model.
func (b *itemBuilder) models() {
	cfg := b.cfg
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		m, path := cfg.Models[name].WithDefaults(), "models."+name
		if m.Provider == "script" {
			b.add(itemFile, path, "answer from the script "+b.path(path+".path", m.Path)+", without a model")
			continue
		}
		text := "ask the model " + strings.TrimSpace(m.Provider+" "+b.text(path+".model", m.Model)) + " at " +
			b.address(path+".base_url", m.BaseURL)
		if p, _ := model.Lookup(m.Provider); p.Own {
			text += " with this machine's credentials of the cloud"
		}
		b.add(itemURL, path, b.callText(text, path+".base_url", path+".headers", slices.Sorted(maps.Keys(m.Headers)),
			path+".api_key"))
	}
}

// addresses adds the other addresses that are called.
func (b *itemBuilder) addresses() {
	cfg := b.cfg
	if o := cfg.Telemetry.OTLP; o != "" {
		b.add(itemURL, "telemetry.otlp", "send traces and metrics of all runs to "+b.address("telemetry.otlp", o))
	}
	if m := cfg.ToolSearch.Embeddings; m != "" {
		b.add(itemURL, "tool_search.embeddings", "send the texts of all tools, and the words of searches, to the "+
			"embeddings model "+b.text("tool_search.embeddings", m)+b.embeddingsAddress(m))
	}
	if cfg.Registry.URL != "" {
		b.add(itemURL, "registry", b.callText("search servers at "+b.address("registry.url", cfg.Registry.URL),
			"registry.url", "", nil, "registry.secret"))
	}
}

// embeddingsAddress is the address of a model that is no entry of models, and the variable of its key.
func (b *itemBuilder) embeddingsAddress(name string) string {
	if _, ok := b.cfg.Models[name]; ok {
		return "" // its entry has its own item
	}
	provider, _, _ := strings.Cut(name, "/")
	p, ok := model.Lookup(provider)
	if !ok || p.BaseURL == "" {
		return ""
	}
	text := " at " + p.BaseURL
	if p.KeyEnv != "" {
		text += " with the key in " + p.KeyEnv
	}
	return text
}

// callText adds the data that is sent to an address to a text. The arguments are the paths of the data.
func (b *itemBuilder) callText(text, url, headers string, names []string, secrets ...string) string {
	cfg := b.cfg
	var sent []string
	for _, secret := range secrets {
		if s, ok := cfg.SecretAt(secret); ok {
			sent = append(sent, sourceText(s))
		}
	}
	for _, k := range names {
		sent = append(sent, "the header "+k+from(cfg, headers+"."+k))
	}
	if vars := cfg.Variables(url); len(vars) > 0 {
		sent = append(sent, dollars(vars)+" in the address")
	}
	if len(sent) > 0 {
		text += ", sending " + strings.Join(sent, ", ")
	}
	return text
}

// sourceText describes the source of a secret.
func sourceText(s config.SecretSource) string {
	switch {
	case s.Env != "":
		return "$" + s.Env
	case s.File != "":
		return "what is in " + s.File
	case s.Keyring != "":
		return s.Keyring + " of the keyring"
	case s.Prompt != "":
		return "what you answer to '" + s.Prompt + "'"
	}
	return "what " + shellLine(s.Command) + " prints"
}

// from names the variables in a value.
func from(cfg *config.Config, path string) string {
	if vars := cfg.Variables(path); len(vars) > 0 {
		return " (from " + dollars(vars) + ")"
	}
	if refs := cfg.SecretRefs(path); len(refs) > 0 {
		return " (from " + namedSecrets(cfg, refs) + ")"
	}
	return ""
}

// headerSecret matches a secret in a template.
var headerSecret = lazyregexp.New(`\{\{\s*secrets\.([A-Za-z0-9_.-]+)\s*\}\}`)

// namedSecrets lists secrets with their owner and source, because the name of a secret does not show what is sent.
func namedSecrets(cfg *config.Config, names []string) string {
	parts := slices.Clone(names)
	for i, name := range parts {
		if cfg.Layer("secrets."+name) == config.LayerUser {
			parts[i] += " of your own file"
		}
		if s, ok := cfg.Secrets[name]; ok {
			parts[i] += ", " + sourceText(s)
		}
	}
	return "the secret " + strings.Join(parts, ", the secret ")
}

func dollars(names []string) string { return "$" + strings.Join(names, ", $") }

// shellLine returns a command as a person would type it.
func shellLine(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`*?;&|<>(){}[]#~!") ||
			strings.ContainsFunc(w, tenon.IsHidden) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
