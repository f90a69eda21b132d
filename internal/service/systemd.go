package service

import (
	_ "embed" // the template of units
	"net/netip"
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
	// units returns the units that are started and stopped: the socket, if there is one, and the service.
	units := func(s *Spec) []string {
		if s.Socket {
			return []string{s.Name + ".socket", unit(s)}
		}
		return []string{unit(s)}
	}
	return Manager{
		Name: "systemd",
		file: func(s *Spec) string {
			if s.System {
				return "/etc/systemd/system/" + unit(s)
			}
			return filepath.Join(s.UserConfig, "systemd", "user", unit(s))
		},
		text:   unitOf,
		socket: socketOf,
		install: func(s *Spec, again bool) [][]string {
			list := [][]string{ctl(s, "daemon-reload")}
			if s.Socket {
				if again { // a socket cannot start while its service runs
					list = append(list, ctl(s, "disable", "--now", unit(s)))
				}
				return append(list, ctl(s, "enable", units(s)[0]), ctl(s, "restart", units(s)[0]))
			}
			list = append(list, ctl(s, "enable", unit(s)))
			if again { // the running process still uses the old unit
				return append(list, ctl(s, "restart", unit(s)))
			}
			return append(list, ctl(s, "start", unit(s)))
		},
		uninstall: func(s *Spec) (before, after [][]string) {
			return [][]string{ctl(s, append([]string{"disable", "--now"}, units(s)...)...)},
				[][]string{ctl(s, "daemon-reload")}
		},
		start: func(s *Spec) [][]string { return [][]string{ctl(s, "start", units(s)[0])} },
		stop:  func(s *Spec) [][]string { return [][]string{ctl(s, append([]string{"stop"}, units(s)...)...)} },
		query: func(s *Spec) []string {
			return ctl(s, append([]string{"show", "--no-pager",
				"--property=Id,ActiveState,SubState,UnitFileState,MainPID"}, units(s)...)...)
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

// parseShow reads what systemctl show prints: lines NAME=value, and an empty line between two units.
func parseShow(output string, st *Status) {
	socket := map[string]string{}
	for block := range strings.SplitSeq(strings.ReplaceAll(output, "\r\n", "\n"), "\n\n") {
		keys := map[string]string{}
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
			keys[key] = value
		}
		st.Enabled = st.Enabled || strings.HasPrefix(keys["UnitFileState"], "enabled")
		if strings.HasSuffix(keys["Id"], ".socket") {
			socket = keys
			continue
		}
		st.Running = keys["ActiveState"] == "active" || keys["ActiveState"] == "reloading"
		if keys["ActiveState"] != "" {
			st.State = keys["ActiveState"] + " (" + keys["SubState"] + ")"
		}
		st.PID, _ = strconv.Atoi(keys["MainPID"]) // 0 if no process runs
	}
	if socket["ActiveState"] == "active" && !st.Running {
		st.Running, st.State = true, "listening (starts at the first connection)"
	}
}

// socketFile returns the path of the socket unit next to the unit of its service.
func socketFile(unit string) string { return strings.TrimSuffix(unit, ".service") + ".socket" }

// socketOf returns the socket unit. systemd does not resolve host names, and it finds the service by the name of the
// socket.
func socketOf(s *Spec) (File, error) {
	listen := s.Listen
	if port, ok := strings.CutPrefix(listen, "localhost:"); ok {
		listen = "127.0.0.1:" + port
	}
	address, err := netip.ParseAddrPort(listen)
	if err != nil || address.Port() == 0 {
		return File{}, tenon.Errorf(tenon.CodeInvalid, "a socket of systemd cannot listen on '%s': serve.listen has "+
			"to be an IP address with a port, such as 127.0.0.1:8420", tenon.Visible(s.Listen))
	}
	mark := "# " + Mark + "; tenon service uninstall removes it.\n"
	if s.Packaged {
		mark = "# Enable this unit to have systemd listen: systemctl enable --now " + s.Name + ".socket. The first " +
			"connection starts\n# " + s.Name + ".service, connections wait while it restarts, and a port below 1024 " +
			"needs no privilege of the service.\n"
	}
	return File{socketFile(systemd().file(s)), mark + "[Unit]\nDescription=Socket of tenon, an MCP host\n" +
		"Documentation=man:tenon-serve(1) https://github.com/tenonhq/tenon\nConditionPathExists=" +
		percent(s.Config) + "\n\n[Socket]\nListenStream=" + address.String() +
		"\nAccept=no\nNoDelay=yes\n\n[Install]\nWantedBy=sockets.target\n"}, nil
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
	data := map[string]any{"Packaged": s.Packaged, "System": s.System, "Socket": s.Socket, "Name": s.Name, "Mark": Mark,
		"Start": strings.Join(words, " "), "Folder": percent(filepath.Dir(s.Config)), "Loads": credentials,
		"ConfigPath": percent(s.Config), "Variables": percent(s.Environment()), "PathWord": setting("PATH=" + s.Path)}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", tenon.Errorf(tenon.CodeInternal, "the template of units: %w", err)
	}
	return b.String(), nil
}

// percent escapes a value in a unit, because systemd expands specifiers such as %h (systemd.unit(5)).
func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// unitWord returns a word for a command line in a unit. systemd also expands variables there (systemd.service(5)).
func unitWord(s string) string { return quoted(strings.ReplaceAll(percent(s), "$", "$$")) }

// setting returns a word for Environment=, where $ has no special meaning.
func setting(s string) string { return quoted(percent(s)) }

// quoted puts a word into quotation marks if systemd would split or change it.
func quoted(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"'\\;#") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
