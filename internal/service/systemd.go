package service

import (
	_ "embed" // the template of units
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/template"
)

//go:embed unit.tmpl
var unitText string

func systemd() Manager {
	ctl := func(s *Spec, words ...string) []string {
		if s.System {
			return append([]string{"systemctl"}, words...)
		}
		return append([]string{"systemctl", "--user"}, words...)
	}
	unit := func(s *Spec) string { return s.Name + ".service" }
	return Manager{
		Name: "systemd",
		file: func(s *Spec) string {
			if s.System {
				return "/etc/systemd/system/" + unit(s)
			}
			return filepath.Join(s.UserConfig, "systemd", "user", unit(s))
		},
		text: unitOf,
		install: func(s *Spec, again bool) [][]string {
			list := [][]string{ctl(s, "daemon-reload"), ctl(s, "enable", unit(s))}
			if again { // the running process has the old unit
				return append(list, ctl(s, "restart", unit(s)))
			}
			return append(list, ctl(s, "start", unit(s)))
		},
		uninstall: func(s *Spec) (before, after [][]string) {
			return [][]string{ctl(s, "disable", "--now", unit(s))}, [][]string{ctl(s, "daemon-reload")}
		},
		start: func(s *Spec) [][]string { return [][]string{ctl(s, "start", unit(s))} },
		stop:  func(s *Spec) [][]string { return [][]string{ctl(s, "stop", unit(s))} },
		query: func(s *Spec) []string {
			return ctl(s, "show", "--no-pager", "--property=ActiveState,SubState,UnitFileState,MainPID", unit(s))
		},
		parse: parseShow,
		logs: func(s *Spec, lines int, follow bool) []string {
			words := []string{"journalctl"}
			if !s.System {
				words = append(words, "--user")
			}
			words = append(words, "--no-pager", "--lines="+strconv.Itoa(lines), "--unit="+unit(s))
			if follow {
				words = append(words, "--follow")
			}
			return words
		},
		others: func(s *Spec) []string {
			if !s.System {
				return nil
			}
			return []string{"/usr/lib/systemd/system/" + unit(s), "/lib/systemd/system/" + unit(s)}
		},
	}
}

// parseShow reads the lines NAME=value of systemctl show.
func parseShow(output string, st *Status) {
	keys := map[string]string{}
	for line := range strings.Lines(output) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		keys[key] = value
	}
	st.Enabled = strings.HasPrefix(keys["UnitFileState"], "enabled")
	st.Running = keys["ActiveState"] == "active" || keys["ActiveState"] == "reloading"
	if keys["ActiveState"] != "" {
		st.State = keys["ActiveState"] + " (" + keys["SubState"] + ")"
	}
	st.PID, _ = strconv.Atoi(keys["MainPID"]) // 0 without a process
}

func unitOf(s *Spec) (string, error) {
	t, err := template.Parse("unit", unitText, nil)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the template of units: %w", err)
	}
	words := []string{setting(s.Program)} // no variable is expanded in the path of a program
	for _, w := range s.arguments() {
		words = append(words, unitWord(w))
	}
	credentials := make([]string, len(s.Credentials))
	for i, c := range s.Credentials {
		credentials[i] = "LoadCredential=" + unitWord(c.Name+":"+c.File)
	}
	data := map[string]any{"Packaged": s.Packaged, "System": s.System, "Name": s.Name, "Mark": Mark,
		"Start": strings.Join(words, " "), "Folder": percent(filepath.Dir(s.Config)), "Loads": credentials,
		"ConfigPath": percent(s.Config), "Variables": percent(s.Environment()), "PathWord": setting("PATH=" + s.Path)}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the template of units: %w", err)
	}
	return b.String(), nil
}

// percent escapes a value of a unit: systemd expands specifiers such as %h (systemd.unit(5)).
func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// unitWord returns a word of a command line of a unit. systemd also expands variables there (systemd.service(5)).
func unitWord(s string) string { return quoted(strings.ReplaceAll(percent(s), "$", "$$")) }

// setting returns a word of Environment=, in which $ has no meaning.
func setting(s string) string { return quoted(percent(s)) }

// quoted puts a word into quotation marks if systemd would split or change it.
func quoted(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"'\\;#") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
