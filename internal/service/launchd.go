package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// launchd describes launch agents of a user; see launchd.plist(5) and launchctl(1).
func launchd() Manager {
	domain := func(s *Spec) string { return "gui/" + strconv.Itoa(s.UID) }
	target := func(s *Spec) string { return domain(s) + "/" + s.label() }
	file := func(s *Spec) string { return filepath.Join(s.UserHome, "Library", "LaunchAgents", s.label()+".plist") }
	start := func(s *Spec) [][]string { return [][]string{{"launchctl", "bootstrap", domain(s), file(s)}} }
	// launchd restarts an agent with KeepAlive after a signal. stop therefore removes the agent from the domain.
	stop := func(s *Spec) [][]string { return [][]string{{"launchctl", "bootout", target(s)}} }
	return Manager{
		Name:             "launchd",
		UnknownIfStopped: true,

		file: file,
		text: func(s *Spec) (string, error) { return plistOf(s), nil },
		install: func(s *Spec, again bool) [][]string {
			if again {
				return append(stop(s), start(s)...)
			}
			return start(s)
		},
		uninstall: func(s *Spec) (before, after [][]string) { return stop(s), nil },
		start:     start,
		stop:      stop,
		query:     func(s *Spec) []string { return []string{"launchctl", "print", target(s)} },
		parse:     parsePrint,
		logs: func(s *Spec, lines int, follow bool) []string {
			words := []string{"tail", "-n", strconv.Itoa(lines)}
			if follow {
				words = append(words, "-F")
			}
			return append(words, logFile(s))
		},
		others: func(*Spec) []string { return nil },
	}
}

// logFile returns the path of the log file that launchd writes.
func logFile(s *Spec) string { return filepath.Join(s.UserHome, "Library", "Logs", s.Name+".log") }

// parsePrint reads the indented lines NAME = value in the output of launchctl print. A loaded agent starts at each
// login.
func parsePrint(output string, st *Status) {
	st.Enabled = true // because its file is in LaunchAgents
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "\t\t") {
			continue // belongs to another object
		}
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), " = "); key {
		case "state":
			st.State, st.Running = value, value == "running"
		case "pid":
			st.PID, _ = strconv.Atoi(value) // 0 if no process runs
		}
	}
}

func plistOf(s *Spec) string {
	var b strings.Builder
	b.WriteString(xml.Header)
	b.WriteString(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	fmt.Fprintf(&b, "<!-- %s; tenon service uninstall removes it. -->\n<plist version=\"1.0\">\n<dict>\n", Mark)
	key := func(name, value string) { fmt.Fprintf(&b, "  <key>%s</key>\n  %s\n", name, value) }
	key("Label", stringOf(s.label()))
	words := []string{"<array>"}
	for _, w := range append([]string{s.Program}, s.arguments()...) {
		words = append(words, "    "+stringOf(w))
	}
	key("ProgramArguments", strings.Join(append(words, "  </array>"), "\n"))
	key("WorkingDirectory", stringOf(filepath.Dir(s.Config)))
	key("EnvironmentVariables", "<dict>\n    <key>PATH</key>\n    "+stringOf(s.Path)+"\n  </dict>")
	key("RunAtLoad", "<true/>")
	key("KeepAlive", "<dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>")
	key("ThrottleInterval", "<integer>10</integer>")
	key("ExitTimeOut", "<integer>20</integer>")
	key("ProcessType", stringOf("Background"))
	key("Umask", "<integer>63</integer>") // 0077
	key("StandardErrorPath", stringOf(logFile(s)))
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// stringOf returns a text as an element of a property list.
func stringOf(text string) string { return "<string>" + escaped(text) + "</string>" }

// escaped returns a text for XML.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
