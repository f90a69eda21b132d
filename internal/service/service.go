// Package service describes tenon serve to the service manager of an operating system: units of systemd, property lists
// of launchd, tasks of Windows. It is what tenon service uses.
//
//	[Spec] ─► [Find] (a manager) ─► the file of the service, and the commands that install, start, stop or remove it
//
// The functions are pure: they write no file and run no command. internal/cli does both, or prints them with --dry-run,
// so that everything is tested where no service manager runs. packaging/tenon.service, the unit of the deb and rpm
// packages, is the unit of this package for a system (TestPackagedUnit).
//
// Values of other files and of the environment become words of units and elements of XML. Characters that a unit
// expands are escaped. Control characters and invisible ones are refused: a line feed in a path would be a new key.
package service

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Mark is part of a line in every file that tenon service writes. Files without the mark belong to others, and are
// neither replaced nor removed.
const Mark = "Written by tenon service install"

// Spec describes a service.
type Spec struct {
	Name    string // name of the unit: tenon, or a name that begins with tenon-
	System  bool   // installed for the machine instead of a user
	Program string // absolute path of tenon
	Config  string // absolute path of tenon.yaml
	Home    string // absolute path of the store's folder; if empty, the default
	// Path is the value of PATH for servers such as npx. It is not used for a system service, which has the PATH of the
	// manager.
	Path        string
	Credentials []Credential
	Packaged    bool // the file is part of a package and does not contain the mark
	// Socket makes the manager listen, and start the service at the first connection (systemd only). Listen is the
	// address of the socket, ADDRESS:PORT, without host names.
	Socket bool
	Listen string

	UserHome   string // absolute path of the user's home folder
	UserConfig string // absolute path of the user's folder of configurations: XDG_CONFIG_HOME
	UID        int
}

// Credential is a secret that the manager reads. Only the service can read it, as CREDENTIALS_DIRECTORY/NAME.
type Credential struct{ Name, File string }

// File is a file of a service: a unit, a property list or a task.
type File struct{ Path, Text string }

// Status is the state of a service. Fields are empty if the manager does not report them.
type Status struct {
	Name      string `json:"name"`
	Manager   string `json:"manager"`
	Scope     string `json:"scope"` // user or system
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled"` // starts without a person
	Running   bool   `json:"running"`
	State     string `json:"state"` // state in the terms of the service manager
	PID       int    `json:"pid,omitempty"`
}

// Manager is a service manager.
type Manager struct {
	Name string // systemd, launchd or windows
	// TextOnly reports that tenon only prints the file. A person registers the service.
	TextOnly bool
	// UnknownIfStopped reports that the command of [Manager.Query] fails for a service that was stopped.
	UnknownIfStopped bool

	file      func(*Spec) string
	socket    func(*Spec) (File, error) // nil for a manager without sockets
	text      func(*Spec) (string, error)
	install   func(*Spec, bool) [][]string
	uninstall func(*Spec) (before, after [][]string)
	start     func(*Spec) [][]string
	stop      func(*Spec) [][]string
	query     func(*Spec) []string
	parse     func(string, *Status)
	logs      func(*Spec, int, bool) []string
	others    func(*Spec) []string
}

// Names lists the managers.
func Names() []string { return []string{"systemd", "launchd", "windows"} }

// Find returns a manager by its name, or the manager of an operating system by its GOOS name.
func Find(name string) (Manager, bool) {
	switch name {
	case "systemd", "linux":
		return systemd(), true
	case "launchd", "darwin":
		return launchd(), true
	case "windows":
		return windows(), true
	}
	return Manager{}, false
}

var (
	validName       = regexp.MustCompile(`^tenon(-[a-z0-9]+)*$`)
	validCredential = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// maxName bounds names of services and credentials, in bytes.
const maxName = 64

// Check returns an error for a value that is not valid for a service. Errors: invalid.
func (m Manager) Check(s *Spec) error {
	if len(s.Name) > maxName || !validName.MatchString(s.Name) {
		return tenon.Errorf(tenon.CodeInvalid, "the name '%s' is invalid: it has to be tenon, or begin with tenon- "+
			"and have lower-case letters, digits and minus signs", tenon.Visible(s.Name))
	}
	if s.System && m.Name != "systemd" {
		return tenon.Errorf(tenon.CodeInvalid, "%s: --system is for systemd only; without it, the service belongs "+
			"to you", m.Name)
	}
	if len(s.Credentials) > 0 && m.Name != "systemd" {
		return tenon.Errorf(tenon.CodeInvalid, "%s has no credentials; use secrets of the keyring", m.Name)
	}
	if s.Socket && m.socket == nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s: --socket is for systemd only", m.Name)
	}
	if m.Name == "systemd" && strings.ContainsAny(s.Program, `'"\`) {
		return tenon.Errorf(tenon.CodeInvalid, "the path of the program, %s, has a character that systemd does not "+
			"allow there: quotation marks and backslashes", s.Program)
	}
	values := []string{s.Program, s.Config, s.Home, s.Path, s.UserHome, s.UserConfig}
	for i, c := range s.Credentials {
		if len(c.Name) > maxName || !validCredential.MatchString(c.Name) {
			return tenon.Errorf(tenon.CodeInvalid, "the credential '%s' is invalid: its name has letters, digits, "+
				"dots, underscores and minus signs", tenon.Visible(c.Name))
		}
		if slices.ContainsFunc(s.Credentials[:i], func(o Credential) bool { return o.Name == c.Name }) {
			return tenon.Errorf(tenon.CodeInvalid, "the credential '%s' is given twice", c.Name)
		}
		values = append(values, c.File)
	}
	for _, v := range values {
		if strings.ContainsFunc(v, tenon.IsHidden) {
			return tenon.Errorf(tenon.CodeInvalid, "%q has a control character or an invisible one; a "+
				"service's file must not have it", v)
		}
	}
	return m.checkPlaces(s)
}

// hidden contains the folders that the unit of a system service cannot access, because of ProtectHome and PrivateTmp.
var hidden = []string{"/home", "/root", "/run/user", "/tmp", "/var/tmp"}

func (m Manager) checkPlaces(s *Spec) error {
	if !s.System {
		return nil
	}
	for _, p := range []struct{ what, path, remedy string }{
		{"the program", s.Program, "copy it to /usr/local/bin and run it from there"},
		{"the configuration", s.Config, "copy it to /etc/tenon/tenon.yaml"},
	} {
		for _, dir := range hidden {
			if rel, err := filepath.Rel(dir, p.path); err == nil && filepath.IsLocal(rel) {
				return tenon.Errorf(tenon.CodeInvalid, "%s %s is in %s, which a system's service does not see; %s",
					p.what, p.path, dir, p.remedy)
			}
		}
	}
	if s.Home != "" {
		return tenon.Errorf(tenon.CodeInvalid, "--home is for services of a user: a system's service keeps its store "+
			"in %s", stateFolder(s))
	}
	return nil
}

// File returns the path of the service's file.
func (m Manager) File(s *Spec) string { return m.file(s) }

// SocketFile returns the path of the file of the service's socket. It returns "" for a manager without sockets.
func (m Manager) SocketFile(s *Spec) string {
	if m.socket == nil {
		return ""
	}
	return socketFile(m.file(s))
}

// Others returns the paths of files of the same service from packages.
func (m Manager) Others(s *Spec) []string { return m.others(s) }

// Files returns the file of the service and, if the service has a socket, the file of the socket. Errors: invalid for
// an address that is not valid for a socket, internal.
func (m Manager) Files(s *Spec) ([]File, error) {
	text, err := m.text(s)
	if err != nil {
		return nil, err
	}
	files := []File{{m.file(s), text}}
	if s.Socket {
		socket, err := m.socket(s)
		if err != nil {
			return nil, err
		}
		files = append(files, socket)
	}
	return files, nil
}

// Install returns the commands to run after the files were written. They load the files, and start the service or its
// socket. again reports that a file was replaced.
func (m Manager) Install(s *Spec, again bool) [][]string { return m.install(s, again) }

// Uninstall returns the commands to run before and after the file is removed.
func (m Manager) Uninstall(s *Spec) (before, after [][]string) { return m.uninstall(s) }

// Start returns the commands that start an installed service.
func (m Manager) Start(s *Spec) [][]string { return m.start(s) }

// Stop returns the commands that stop a service until its next start.
func (m Manager) Stop(s *Spec) [][]string { return m.stop(s) }

// Query returns the command whose output [Manager.Status] reads.
func (m Manager) Query(s *Spec) []string { return m.query(s) }

// Logs returns the command that prints the last lines of the service's log. If follow is set, the command also prints
// new lines as they are written.
func (m Manager) Logs(s *Spec, lines int, follow bool) []string { return m.logs(s, lines, follow) }

// Status returns the state of a service. output is the output of the command that Query returns. It may be empty if the
// manager does not know the service.
func (m Manager) Status(s *Spec, installed bool, output string) Status {
	st := Status{Name: s.Name, Manager: m.Name, Scope: "user", File: m.file(s), Installed: installed,
		State: "not installed"}
	if s.System {
		st.Scope = "system"
	}
	if installed {
		st.State = "stopped"
		m.parse(output, &st)
	}
	return st
}

// arguments returns the arguments of the service's program.
func (s *Spec) arguments() []string {
	args := []string{"serve", "--config", s.Config}
	switch {
	case s.System:
		args = append(args, "--home", stateFolder(s)+"/store")
	case s.Home != "":
		args = append(args, "--home", s.Home)
	}
	return append(args, "--no-input")
}

// label returns the name of a service in launchd and in Windows' task scheduler.
func (s *Spec) label() string { return "com.tenonhq." + s.Name }

// stateFolder returns the folder for the store of a system service.
func stateFolder(s *Spec) string { return "/var/lib/" + s.Name }
