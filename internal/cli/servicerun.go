package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/service"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// The limits of a command of a service manager.
const (
	manageTime = 3 * time.Minute // a start waits for the network, which systemd gives two minutes
	maxManaged = 1 << 20         // bytes of output
	maxUnit    = 1 << 20         // bytes of a service's file
)

// serviceChange is the JSON output of the commands that change a service.
type serviceChange struct {
	Name     string     `json:"name"`
	Manager  string     `json:"manager"`
	File     string     `json:"file"`
	Text     string     `json:"text,omitempty"` // of the file
	Remove   bool       `json:"remove,omitempty"`
	Commands [][]string `json:"commands"`
	Done     bool       `json:"done"`
	// Socket describes the socket unit of the service, if the change writes or removes one.
	Socket *serviceSocket `json:"socket,omitempty"`
}

// serviceSocket describes the socket unit of a service in a [serviceChange]; Remove says that the unit is deleted.
type serviceSocket struct {
	File   string `json:"file"`
	Text   string `json:"text,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

// serviceInstall writes the files of the service and starts it.
func (a *app) serviceInstall(ctx context.Context, f *serviceFlags) error {
	m, s, err := a.service(f)
	if err != nil {
		return err
	}
	had := s.Socket // whether a socket is installed already
	s.Socket = f.socket
	if err := m.Check(s); err != nil {
		return err
	}
	if err := a.configured(ctx, m, s); err != nil {
		return err
	}
	files, err := m.Files(s)
	if err != nil {
		return err
	}
	if m.TextOnly && !f.dryRun {
		if err := a.printService(m, s, files[0].Text); err != nil {
			return err
		}
		a.note("nothing was changed. Write this to %s and run:", m.File(s))
		for _, c := range m.Install(s, false) {
			a.note("  %s", commandLine(c))
		}
		return nil
	}
	old, err := serviceFile(m.File(s))
	if err != nil {
		return err
	}
	change := serviceChange{Text: files[0].Text, Commands: m.Install(s, old != "")}
	if s.Socket {
		change.Socket = &serviceSocket{File: files[1].Path, Text: files[1].Text}
	} else if had {
		change.Socket = &serviceSocket{File: m.SocketFile(s), Remove: true}
	}
	free := othersFree(m, s)
	if f.dryRun {
		if free != nil {
			a.note("it would be refused: %s", free)
		}
		return a.showService(m, s, change)
	}
	if free != nil {
		return free
	}
	if s.System && os.Geteuid() != 0 {
		return tenon.Errorf(tenon.CodeDenied, "only root installs a service of the machine: sudo %s service install "+
			"--system", s.Program)
	}
	if had && !s.Socket {
		if err := a.removeSocket(ctx, m, s); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the folder of the service's file: %w", err)
		}
		if err := wholefile.Write(file.Path, []byte(file.Text), 0o644); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", file.Path, err)
		}
		a.hint("wrote %s", file.Path)
	}
	if err := a.manage(ctx, change.Commands); err != nil {
		return err
	}
	if m.Name == "systemd" && !s.System {
		a.hint("the service ends when you log out; to keep it: loginctl enable-linger")
	}
	change.Name, change.Manager, change.File, change.Done = s.Name, m.Name, m.File(s), true
	if s.Socket {
		return a.did(change, "%s is installed: it starts at the first connection to %s", s.Name, s.Listen)
	}
	return a.did(change, "%s is installed and was started; see tenon service status", s.Name)
}

// removeSocket removes the socket of a service that is installed again without one.
func (a *app) removeSocket(ctx context.Context, m service.Manager, s *service.Spec) error {
	with := *s
	with.Socket = true
	before, _ := m.Uninstall(&with) // it also stops the service, so that the service can open the listener itself
	if err := a.manage(ctx, before); err != nil {
		return err
	}
	if err := os.Remove(m.SocketFile(s)); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the file of the service's socket: %w", err)
	}
	a.hint("removed %s", m.SocketFile(s))
	return nil
}

// printService prints the text of a service for a person to register.
func (a *app) printService(m service.Manager, s *service.Spec, text string) error {
	if a.isJSON() {
		return a.printJSON(serviceChange{Name: s.Name, Manager: m.Name, File: m.File(s), Text: text,
			Commands: m.Install(s, false)})
	}
	return a.writeFileBytes("the task", []byte(text))
}

// serviceUninstall stops the service and removes its file.
func (a *app) serviceUninstall(ctx context.Context, f *serviceFlags) error {
	m, s, err := a.service(f)
	if err != nil {
		return err
	}
	before, after := m.Uninstall(s)
	change := serviceChange{Remove: true, Commands: append(before, after...)}
	paths := []string{m.File(s)}
	if s.Socket {
		paths = append(paths, m.SocketFile(s))
		change.Socket = &serviceSocket{File: paths[1], Remove: true}
	}
	if f.dryRun {
		return a.showService(m, s, change)
	}
	if err := textOnly(m, before); err != nil {
		return err
	}
	for _, path := range paths {
		old, err := serviceFile(path)
		switch {
		case err != nil:
			return err
		case old == "":
			return notInstalled(m, s)
		case !strings.Contains(old, service.Mark):
			return tenon.Errorf(tenon.CodeConflict, "%s was not written by tenon service install and stays; remove it "+
				"by hand", path)
		}
	}
	if err := a.manage(ctx, before); err != nil {
		a.note("%s", err) // a service that never started can be removed
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the service's file: %w", err)
		}
	}
	if err := a.manage(ctx, after); err != nil {
		return err
	}
	change.Name, change.Manager, change.File, change.Done = s.Name, m.Name, paths[0], true
	return a.did(change, "%s is uninstalled; its configuration and its store stay", s.Name)
}

// serviceStatus prints the state of a service. A service that does not run is an error that is printed already.
func (a *app) serviceStatus(ctx context.Context, m service.Manager, s *service.Spec) error {
	if err := textOnly(m, [][]string{m.Query(s)}); err != nil {
		return err
	}
	err := installed(m, s)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
		return err
	}
	there, output := err == nil, ""
	if there {
		output, err = a.managed(ctx, m.Query(s))
		if err != nil && !(m.UnknownIfStopped && errors.As(err, new(*exec.ExitError))) {
			return err
		}
	}
	st := m.Status(s, there, output)
	if a.isJSON() {
		err = a.printJSON(st)
	} else {
		starts := "does not start by itself"
		if st.Enabled {
			starts = "starts by itself"
		}
		text := fmt.Sprintf("%s: %s", st.Name, st.State)
		if st.PID > 0 {
			text += fmt.Sprintf(", process %d", st.PID)
		}
		if there {
			text += "; " + starts + "\n" + st.File
		}
		err = a.printText(text)
	}
	if err == nil && !st.Running {
		return reported{tenon.Errorf(tenon.CodeConflict, "%s does not run", s.Name)}
	}
	return err
}

// showService prints the changes that a command such as tenon service install would make.
func (a *app) showService(m service.Manager, s *service.Spec, c serviceChange) error {
	c.Name, c.Manager, c.File = s.Name, m.Name, m.File(s)
	if a.isJSON() {
		return a.printJSON(c)
	}
	var b strings.Builder
	if c.Text != "" {
		fmt.Fprintf(&b, "would write %s:\n\n%s\n", c.File, c.Text)
	}
	if c.Remove {
		fmt.Fprintf(&b, "would remove %s\n", c.File)
	}
	switch {
	case c.Socket == nil:
	case c.Socket.Remove:
		fmt.Fprintf(&b, "would remove %s\n", c.Socket.File)
	default:
		fmt.Fprintf(&b, "would write %s:\n\n%s\n", c.Socket.File, c.Socket.Text)
	}
	b.WriteString("would run:\n")
	for _, words := range c.Commands {
		b.WriteString("  " + commandLine(words) + "\n")
	}
	return a.printText(strings.TrimRight(b.String(), "\n"))
}

// commandLine returns a command as a person types it.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

// serviceFile returns the text of a service's file, or "" if the file does not exist.
func serviceFile(path string) (string, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", tenon.Errorf(tenon.CodeInvalid, "the service's file: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxUnit:
		return "", tenon.Errorf(tenon.CodeInvalid, "%s is no file of at most %d bytes", path, maxUnit)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeInvalid, "the service's file: %w", err)
	}
	return string(b), nil
}

// installed returns an error of code not_found if the service has no file, neither from tenon service install nor
// from a package.
func installed(m service.Manager, s *service.Spec) error {
	if err := textOnly(m, [][]string{m.Query(s)}); err != nil {
		return err
	}
	for _, path := range append([]string{m.File(s)}, m.Others(s)...) {
		if text, err := serviceFile(path); err != nil || text != "" {
			return err
		}
	}
	return notInstalled(m, s)
}

func notInstalled(m service.Manager, s *service.Spec) error {
	return tenon.Errorf(tenon.CodeNotFound, "the service %s is not installed: there is no %s; tenon service install "+
		"writes it", s.Name, m.File(s))
}

// textOnly returns an error if tenon only writes the service files of a manager and does not run its commands. The
// error lists the commands, so that a person can run them.
func textOnly(m service.Manager, commands [][]string) error {
	if !m.TextOnly {
		return nil
	}
	lines := make([]string, len(commands))
	for i, c := range commands {
		lines[i] = commandLine(c)
	}
	return tenon.Errorf(tenon.CodeInvalid, "tenon does not act on services of %s; run: %s", m.Name,
		strings.Join(lines, "; "))
}

// othersFree returns an error if somebody else wrote a file that the service's files would replace or hide. Errors:
// conflict.
func othersFree(m service.Manager, s *service.Spec) error {
	for _, path := range []string{m.File(s), m.SocketFile(s)} {
		if path == "" {
			continue
		}
		old, err := serviceFile(path)
		if err != nil {
			return err
		}
		if old != "" && !strings.Contains(old, service.Mark) {
			return tenon.Errorf(tenon.CodeConflict, "%s exists, and tenon service install did not write it; remove "+
				"it, or choose another --name", path)
		}
	}
	for _, path := range m.Others(s) {
		if text, err := serviceFile(path); err != nil || text != "" {
			return tenon.Errorf(tenon.CodeConflict, "a package has installed %s: write %s and start it with systemctl "+
				"enable --now %s%s, or choose another --name", path, systemConfig, s.Name, packagedCredentials(s))
		}
	}
	return nil
}

// packagedCredentials says how the unit of a package gets the credentials of a service.
func packagedCredentials(s *service.Spec) string {
	if len(s.Credentials) == 0 {
		return ""
	}
	lines := make([]string, len(s.Credentials))
	for i, c := range s.Credentials {
		lines[i] = "LoadCredential=" + c.Name + ":" + c.File
	}
	return "; for --credential, run systemctl edit " + s.Name + ".service, and write [Service] and below it " +
		strings.Join(lines, " and ")
}

// manage runs commands of a service manager, and stops at the first that fails.
func (a *app) manage(ctx context.Context, list [][]string) error {
	for _, c := range list {
		if _, err := a.managed(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// managed runs a command of a service manager and returns its output. Errors: unreachable if it cannot
// be started or fails, timeout.
func (a *app) managed(ctx context.Context, words []string) (string, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, manageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	out, failure := &limited{left: maxManaged}, &limited{left: maxManaged}
	cmd.Stdout, cmd.Stderr = out, failure
	err := cmd.Run()
	line := commandLine(words)
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return out.String(), nil
	case whole.Err() != nil:
		return "", tenon.Errorf(tenon.CodeCancelled, "%s was stopped: %w", line, whole.Err())
	case ctx.Err() != nil:
		return "", tenon.Errorf(tenon.CodeTimeout, "%s did not end within %s", line, manageTime)
	case errors.As(err, &exit):
		said := strings.TrimSpace(failure.String())
		return out.String(), tenon.Errorf(tenon.CodeUnreachable, "%s failed: %w: %s%s", line, err, said,
			noSession(words, said))
	}
	return "", tenon.Errorf(tenon.CodeUnreachable, "%s cannot be started: %w; tenon service install --dry-run prints "+
		"the file for another service manager", words[0], err)
}

// stream runs a command whose output goes to stdout as it arrives.
func (a *app) stream(ctx context.Context, words []string) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = a.out, a.err
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return tenon.Errorf(tenon.CodeCancelled, "%s was stopped: %w", words[0], ctx.Err())
	}
	return tenon.Errorf(tenon.CodeUnreachable, "%s: %w", commandLine(words), err)
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	left int
}

// Write implements [io.Writer].
func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.Buffer.Write(b[:n])
	return len(b), nil
}

var _ io.Writer = (*limited)(nil)
