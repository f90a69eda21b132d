package service

import (
	"fmt"
	"path/filepath"
	"strings"
)

// windows describes a task of the task scheduler that starts at the user's logon. tenon serve does not speak the
// protocol of Windows services, and a task needs no wrapper. The person registers the text:
//
//	tenon service install >tenon.xml
//	schtasks /Create /TN tenon /XML tenon.xml
//
// The schema is https://learn.microsoft.com/en-us/windows/win32/taskschd/task-scheduler-schema.
func windows() Manager {
	task := func(verb string, more ...string) func(*Spec) [][]string {
		return func(s *Spec) [][]string {
			return [][]string{append([]string{"schtasks", verb, "/TN", s.Name}, more...)}
		}
	}
	return Manager{
		Name:     "windows",
		TextOnly: true,
		file:     func(s *Spec) string { return s.Name + ".xml" },
		text:     func(s *Spec) (string, error) { return taskOf(s), nil },
		install: func(s *Spec, _ bool) [][]string {
			return append(task("/Create", "/XML", s.Name+".xml", "/F")(s), task("/Run")(s)...)
		},
		uninstall: func(s *Spec) (before, after [][]string) {
			return append(task("/End")(s), task("/Delete", "/F")(s)...), nil
		},
		start:  task("/Run"),
		stop:   task("/End"),
		query:  func(s *Spec) []string { return []string{"schtasks", "/Query", "/TN", s.Name, "/V", "/FO", "LIST"} },
		parse:  func(string, *Status) {}, // the output is in the language of the system
		logs:   func(s *Spec, _ int, _ bool) []string { return task("/Query", "/V")(s)[0] },
		others: func(*Spec) []string { return nil },
	}
}

func taskOf(s *Spec) string {
	words := make([]string, 0, 8)
	for _, w := range s.arguments() {
		words = append(words, windowsWord(w))
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!-- %s; remove it with: schtasks /Delete /TN %s -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>tenon, an MCP host: workbench, HTTP APIs and background runs</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>10</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>%s</Command>
      <Arguments>%s</Arguments>
      <WorkingDirectory>%s</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`, Mark, s.Name, escaped(s.Program), escaped(strings.Join(words, " ")), escaped(filepath.Dir(s.Config)))
}

// windowsWord quotes a word as CommandLineToArgvW splits it.
func windowsWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"") {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, r := range s {
		switch r {
		case '\\':
			slashes++
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, 2*slashes+1))
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		slashes = 0
		b.WriteRune(r)
	}
	return b.String() + strings.Repeat(`\`, 2*slashes) + `"`
}
