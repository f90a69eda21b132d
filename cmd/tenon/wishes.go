package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
)

// wish is one thing that a configuration would start or call, and what it would
// hand over. The key changes with everything that the text tells of.
type wish struct{ key, path, text string }

// wishes lists everything in a configuration that needs consent, in a stable
// order. What a person's own file says needs none.
func wishes(cfg *config.Config) []wish {
	var list []wish
	add := func(path, text string, parts ...string) {
		if cfg.FromUser(path) {
			return
		}
		sum := sha256.New()
		for _, p := range append([]string{cfg.Path, path, text}, parts...) {
			fmt.Fprintf(sum, "%d:%s", len(p), p)
		}
		list = append(list, wish{hex.EncodeToString(sum.Sum(nil)), path, text})
	}
	for name, s := range cfg.Servers {
		path := "servers." + name
		switch {
		case !s.IsEnabled():
		case cfg.Added(path) && (s.Auth.Type == "" || s.Auth.Type == servers.AuthNone): // of a table, which is asked about where its commands are
		case s.InferTransport() == servers.TransportStdio && cfg.FromTable(path):
			w := commandWish(append([]string{s.Command}, s.Args...))
			w.path, w.text = path, w.text+", a server of the table "+cfg.TableOf(name)
			list = append(list, w)
		case s.InferTransport() == servers.TransportStdio:
			text, parts := startWish(cfg, path, s)
			mine, own := principalWish(cfg, path, s)
			add(path, text+mine, append(parts, own...)...)
		default:
			var secrets []string
			switch s.Auth.Type {
			case "", servers.AuthNone:
			case servers.AuthOAuth:
				secrets = []string{path + ".auth.client_secret", path + ".auth.private_key", path + ".auth.assertion"}
			default:
				secrets = []string{path + ".auth.secret"}
			}
			text, parts := callWish(cfg, path+".url", s.URL, path+".headers", secrets...)
			parts = append(parts, s.Auth.Type, s.Auth.Header)
			if s.Auth.Type == servers.AuthOAuth {
				if s.Auth.Issuer != "" {
					text += ", signing in at " + s.Auth.Issuer
				}
				parts = append(parts, s.Auth.Issuer, s.Auth.ClientID)
			}
			mine, own := principalWish(cfg, path, s)
			add(path, text+mine, append(parts, own...)...)
		}
	}
	for i, t := range cfg.ToolTables {
		// The digest: another version of the table is asked about again.
		add(fmt.Sprintf("tool_tables[%d]", i), "offer the tools of the table "+t.Path+": "+cfg.TableBrings(i), cfg.TableDigest(i))
	}
	for name, t := range cfg.Tools {
		if t.Kind == tenon.KindHTTP && t.IsEnabled() && !cfg.Added("tools."+name) {
			text, parts := requestWish(cfg, cmp.Or(cfg.Written("tools."+name+".request.url"), t.Request.URL), t.Request)
			add("tools."+name, text, parts...)
		}
	}
	for name, s := range cfg.Secrets {
		if len(s.Command) > 0 {
			add("secrets."+name, "start "+shellLine(s.Command), s.Command...)
		}
	}
	for path, command := range cfg.SecretCommands() {
		if cfg.Origin(path+".command") != "default" { // written there, not by name
			add(path, "start "+shellLine(command)+" for "+path, command...)
		}
	}
	for name, m := range cfg.Models {
		path := "models." + name
		if cfg.Origin(path+".base_url") != "default" || cfg.Origin(path+".api_key") != "default" || len(m.Headers) > 0 {
			text, parts := callWish(cfg, path+".base_url", m.BaseURL, path+".headers", path+".api_key")
			add(path, text, parts...)
		}
	}
	if o := cfg.Telemetry.OTLP; o != "" {
		add("telemetry.otlp", "send traces and metrics of all runs to "+cmp.Or(cfg.Written("telemetry.otlp"), o), o)
	}
	if cfg.Registry.URL != "" {
		text, parts := callWish(cfg, "registry.url", cfg.Registry.URL, "", "registry.secret")
		add("registry", text, parts...)
	}
	slices.SortFunc(list, func(a, b wish) int { return strings.Compare(a.text+a.key, b.text+b.key) })
	return list
}

// startWish is the wish to start a server's process.
func startWish(cfg *config.Config, path string, s servers.Config) (text string, parts []string) {
	command := append([]string{s.Command}, s.Args...)
	text, parts = "start "+shellLine(command), append(slices.Clone(command), s.Cwd, s.EnvFile)
	var given []string
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		parts = append(parts, k+"="+s.Env[k]) // a variable can change what a program loads
		given = append(given, k+from(cfg, path+".env."+k))
	}
	if len(given) > 0 {
		text += ", with " + strings.Join(given, ", ") + " in its environment"
	}
	usual := servers.Config{}.WithDefaults().InheritEnv
	passed := slices.DeleteFunc(slices.Clone(s.InheritEnv), func(n string) bool { return slices.Contains(usual, n) })
	if slices.Sort(passed); len(passed) > 0 {
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
	return text, parts
}

// principalWish is what a server's wish has beside it where principals have something of
// their own there.
func principalWish(cfg *config.Config, path string, s servers.Config) (text string, parts []string) {
	for _, who := range slices.Sorted(maps.Keys(s.Principals)) {
		own, at := s.Principals[who], path+".principals."+who
		var given []string
		if source, ok := cfg.SecretAt(at + ".auth.secret"); ok {
			given = append(given, secretWish(source))
		}
		for _, k := range slices.Sorted(maps.Keys(own.Headers)) {
			given = append(given, "the header "+k+from(cfg, at+".headers."+k))
			parts = append(parts, who, k+":"+cfg.Written(at+".headers."+k))
		}
		for _, k := range slices.Sorted(maps.Keys(own.Env)) {
			given = append(given, "the variable "+k+from(cfg, at+".env."+k))
			parts = append(parts, who, k+"="+own.Env[k])
		}
		text += "; for " + who + " with " + strings.Join(given, ", ")
		parts = append(parts, who, own.Auth.Type, own.Auth.Header)
	}
	return text, parts
}

// secretWish says what is sent of a secret.
func secretWish(s config.SecretSource) string {
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

// callWish is the wish to call an address, given the paths of what is sent.
func callWish(cfg *config.Config, url, address, headers string, secrets ...string) (text string, parts []string) {
	text, parts = "call "+address, []string{address}
	if before, _, ok := strings.Cut(address, "?"); ok {
		if _, written, ok := strings.Cut(cfg.Written(url), "?"); ok {
			text = "call " + before + "?" + written // a variable in a query may be a secret
		}
	}
	var sent []string
	for _, secret := range secrets {
		if s, ok := cfg.SecretAt(secret); ok {
			sent = append(sent, secretWish(s))
		}
	}
	for _, k := range headerNames(cfg, headers) {
		sent = append(sent, "the header "+k+from(cfg, headers+"."+k))
		parts = append(parts, k+":"+cfg.Written(headers+"."+k)) // as written: a token that is renewed is no change of the file
	}
	if vars := cfg.Variables(url); len(vars) > 0 {
		sent = append(sent, dollars(vars)+" in the address")
	}
	if len(sent) > 0 {
		text += ", sending " + strings.Join(sent, ", ")
	}
	return text, parts
}

// requestWish is the wish to send the requests of a tool, given the address as it is
// written.
func requestWish(cfg *config.Config, address string, r catalog.Request) (text string, parts []string) {
	text, parts = "send requests to "+address, []string{r.Method, r.URL, r.Body, strconv.FormatBool(r.AllowPrivate)}
	var sent []string
	for _, k := range slices.Sorted(maps.Keys(r.Headers)) {
		sent = append(sent, "the header "+k)
		var refs []string
		for _, m := range headerSecret.FindAllStringSubmatch(r.Headers[k], -1) {
			refs = append(refs, m[1])
		}
		if len(refs) > 0 {
			sent[len(sent)-1] += " (" + r.Headers[k] + ", with " + namedSecrets(cfg, refs) + ")"
		}
		parts = append(parts, k+":"+r.Headers[k])
	}
	if len(sent) > 0 {
		text += ", with " + strings.Join(sent, ", ")
	}
	return text, parts
}

func headerNames(cfg *config.Config, path string) []string {
	kind, rest, _ := strings.Cut(path, ".")
	name := strings.TrimSuffix(rest, ".headers")
	switch kind {
	case "":
		return nil
	case "models":
		return slices.Sorted(maps.Keys(cfg.Models[name].Headers))
	}
	return slices.Sorted(maps.Keys(cfg.Servers[name].Headers))
}

// from names the variables that a value is made of.
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
var headerSecret = regexp.MustCompile(`\{\{\s*secrets\.([A-Za-z0-9_.-]+)\s*\}\}`)

// namedSecrets names secrets, and where each is read: the name says nothing about what is
// handed over, and the file may give it another place the next time.
func namedSecrets(cfg *config.Config, names []string) string {
	parts := slices.Clone(names)
	for i, name := range parts {
		if s, ok := cfg.Secrets[name]; ok {
			parts[i] += ", " + secretWish(s)
		}
	}
	return "the secret " + strings.Join(parts, ", the secret ")
}

func dollars(names []string) string { return "$" + strings.Join(names, ", $") }
