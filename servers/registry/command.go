package registry

import (
	"path"
	"strings"
)

// Setup is one way to configure a server: as a program on this machine, or at an address.
type Setup struct {
	Name      string   `json:"name"`              // for the entry in tenon.yaml
	Transport string   `json:"transport"`         // stdio, http or sse
	Command   []string `json:"command,omitempty"` // of stdio: the program and its arguments
	URL       string   `json:"url,omitempty"`
	// Values are variables of the program's environment, or headers of the requests.
	Values []Value `json:"values,omitempty"`
}

// Value is a variable or a header of a [Setup]. Values to fill in are in angle brackets; secrets are variables.
type Value struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Setups returns the ways to configure a server: its packages that run over stdio, then its addresses.
func (s *Server) Setups() []Setup {
	name := entryName(s.Name)
	var out []Setup
	for _, p := range s.Packages {
		if args := run(p); args != nil {
			out = append(out, Setup{Name: name, Transport: "stdio", Command: args, Values: given(p.Environment)})
		}
	}
	for _, r := range s.Remotes {
		transport := map[string]string{"streamable-http": "http", "sse": "sse"}[r.Type]
		if transport != "" && r.URL != "" {
			out = append(out, Setup{Name: name, Transport: transport, URL: r.URL, Values: given(r.Headers)})
		}
	}
	return out
}

// given returns the inputs that have a value or need one.
func given(list []Input) []Value {
	var out []Value
	for _, in := range list {
		if v, ok := filled(in); ok || in.IsRequired || in.IsSecret {
			out = append(out, Value{in.Name, v})
		}
	}
	return out
}

// command returns the command line that adds a server by its first setup, or nil if it has none.
func command(s Server) []string {
	all := s.Setups()
	if len(all) == 0 {
		return nil
	}
	first, add := all[0], []string{"tenon", "servers", "add"}
	if first.Command != nil {
		for _, v := range first.Values {
			add = append(add, "--env", v.Name+"="+v.Value)
		}
		return append(append(add, first.Name, "--"), first.Command...)
	}
	add = append(add, "--transport", first.Transport)
	for _, v := range first.Values {
		add = append(add, "--header", v.Name+": "+v.Value)
	}
	return append(add, first.Name, first.URL)
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
