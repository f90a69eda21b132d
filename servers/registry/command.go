package registry

import (
	"path"
	"strings"
)

// command returns the command line that adds a server: for a package that runs over stdio, or otherwise for a
// remote. Values to fill in are in angle brackets; secrets are variables.
func command(s Server) []string {
	name := entryName(s.Name)
	for _, p := range s.Packages {
		if args := run(p); args != nil {
			add := []string{"tenon", "servers", "add"}
			for _, e := range p.Environment {
				if v, given := filled(e); given || e.IsRequired || e.IsSecret {
					add = append(add, "--env", e.Name+"="+v)
				}
			}
			return append(append(add, name, "--"), args...)
		}
	}
	for _, r := range s.Remotes {
		transport := map[string]string{"streamable-http": "http", "sse": "sse"}[r.Type]
		if transport == "" || r.URL == "" {
			continue
		}
		add := []string{"tenon", "servers", "add", "--transport", transport}
		for _, h := range r.Headers {
			if v, given := filled(h); given || h.IsRequired || h.IsSecret {
				add = append(add, "--header", h.Name+": "+v)
			}
		}
		return append(add, name, r.URL)
	}
	return nil
}

// entryName converts a name to a valid name of a server in tenon.yaml.
func entryName(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, path.Base(name))
	return name[:min(len(name), 64)]
}

// run returns the command line of a package, or nil if it cannot run over stdio.
func run(p Package) []string {
	if p.Transport.Type != "stdio" && p.Transport.Type != "" || p.Identifier == "" {
		return nil
	}
	at := func(sep string) string {
		if p.Version == "" || strings.Contains(p.Identifier, sep+p.Version) {
			return p.Identifier
		}
		return p.Identifier + sep + p.Version
	}
	var args []string
	switch p.Type {
	case "npm":
		args = append(append([]string{"npx", "-y"}, values(p.RuntimeArguments)...), at("@"))
	case "pypi":
		args = append(append([]string{"uvx"}, values(p.RuntimeArguments)...), at("@"))
	case "oci":
		args = []string{"docker", "run", "-i", "--rm"}
		for _, e := range p.Environment {
			args = append(args, "-e", e.Name)
		}
		args = append(append(args, values(p.RuntimeArguments)...), at(":"))
	default:
		return nil
	}
	return append(args, values(p.PackageArguments)...)
}

func values(list []Input) []string {
	var out []string
	for _, in := range list {
		v, given := filled(in)
		if !given && !in.IsRequired {
			continue
		}
		if in.Type == "named" && in.Name != "" {
			out = append(out, in.Name)
			if in.Value == "" && in.Default == "" && in.ValueHint == "" && !in.IsSecret {
				continue // a flag without a value
			}
		}
		out = append(out, v)
	}
	return out
}

// filled returns the value of an input, and reports whether the registry provides one.
func filled(in Input) (string, bool) {
	switch {
	case in.Value != "" && !strings.Contains(in.Value, "{"):
		return in.Value, true
	case in.Default != "":
		return in.Default, true
	case in.IsSecret || in.Type == "" && in.Value == "" && in.ValueHint == "":
		return "${" + variable(in.Name) + "}", false
	case in.ValueHint != "":
		return "<" + in.ValueHint + ">", false
	case in.Value != "":
		return in.Value, true
	}
	return "<" + in.Name + ">", false
}

// variable converts the name of an input to the name of an environment variable.
func variable(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
