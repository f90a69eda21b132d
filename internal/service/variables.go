package service

import (
	"path"
	"strings"
)

// Variables returns a function that looks up variables as the service will do it. It finds the variables in the
// service's environment file, the folder of its credentials, and the variables that own returns. A configuration can
// thus be checked before the service exists. Escapes in the values of the file are not decoded as systemd decodes them.
func (s *Spec) Variables(own func(string) (string, bool),
	read func(string) ([]byte, error)) func(string) (string, bool) {
	values := map[string]string{}
	if text, err := read(s.Environment()); err == nil { // the file is optional
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			name, value, ok := strings.Cut(line, "=")
			if ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
				values[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
			}
		}
	}
	if len(s.Credentials) > 0 {
		values["CREDENTIALS_DIRECTORY"] = "/run/credentials/" + s.Name + ".service"
	}
	return func(name string) (string, bool) {
		if v, ok := values[name]; ok {
			return v, true
		}
		return own(name)
	}
}

// Environment returns the path of the service's environment file.
func (s *Spec) Environment() string {
	if s.System {
		return "/etc/tenon/environment"
	}
	return path.Join(s.UserConfig, "tenon", "environment")
}
