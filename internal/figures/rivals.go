package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rivals is the built program of internal/rivals.
type rivals struct {
	exe string // "" if they cannot be built here
}

// rivalsOf returns the rivals with the transport "stdio" or "http". They are built on first use. If that
// fails, the reason is printed once and there are no rivals.
func (s *session) rivalsOf(transport string) []candidate {
	if s.rivals == nil {
		s.rivals = s.buildRivals()
	}
	if s.rivals.exe == "" {
		return nil
	}
	names := map[string][]string{
		"stdio": {"go-sdk-stdio", "mcp-go-stdio"},
		"http":  {"go-sdk-http", "go-sdk-http-2026", "mcp-go-http"},
	}[transport]
	var list []candidate
	for _, name := range names {
		list = append(list, candidate{name: name, command: []string{s.rivals.exe, "runner", name}, rival: true})
	}
	return list
}

// buildRivals builds internal/rivals with copies of its go.mod and go.sum. Changed requirements of the main
// module then neither stop the build nor change the working tree.
func (s *session) buildRivals() *rivals {
	dir := filepath.Join(s.root, "internal", "rivals")
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(s.tmp, name), b, 0o600)
		}
		if err != nil {
			s.say("rivals are omitted: %v", err)
			return &rivals{}
		}
	}
	exe := filepath.Join(s.tmp, "rivals")
	cmd := exec.CommandContext(s.ctx, "go", "build", "-mod=mod", "-modfile="+filepath.Join(s.tmp, "go.mod"),
		"-o", exe, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		s.say("rivals are omitted, they cannot be built here: %v: %s", err, lines[len(lines)-1])
		return &rivals{}
	}
	return &rivals{exe: exe}
}
