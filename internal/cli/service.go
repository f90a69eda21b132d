package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/service"
)

// systemConfig is the configuration of a system's service.
const systemConfig = "/etc/tenon/tenon.yaml"

// serviceFlags are the flags of tenon service.
type serviceFlags struct {
	name        string
	manager     string
	system      bool
	dryRun      bool
	socket      bool
	credentials []string
	lines       int
	follow      bool
}

func newService(a *app) *cobra.Command {
	cmd := group("service", "Service: run tenon serve in the background, from the start of the machine")
	cmd.Long = "Has the service manager run tenon serve: systemd on Linux, launchd on macOS. On Windows it prints a\n" +
		"task of the task scheduler, and changes nothing. Without --system the service belongs to you and\n" +
		"runs while you are logged in. --dry-run prints what a verb would write and run."
	f := &serviceFlags{}
	cmd.AddCommand(newServiceInstall(a, f), newServiceUninstall(a, f),
		newServiceAct(a, f, "start", "Start the service", service.Manager.Start,
			"Starts an installed service, which was stopped."),
		newServiceAct(a, f, "stop", "Stop the service until its next start", service.Manager.Stop,
			"Stops the service. It starts again with tenon service start, at the next start of the machine, or\n"+
				"at your next login."),
		newServiceStatus(a, f), newServiceLogs(a, f))
	for _, c := range cmd.Commands() {
		c.Flags().StringVar(&f.name, "name", "tenon", "`NAME` of the service: tenon, or tenon-NAME for a further one")
		c.Flags().Var(&enum{&f.manager, service.Names()}, "manager",
			"`MANAGER` of services: systemd, launchd, windows (default: this machine's)")
		c.Flags().BoolVar(&f.system, "system", false, "act on the service of the machine, as root (systemd only)")
		if n := c.Name(); n != "status" && n != "logs" {
			c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be written and run, and do nothing")
		}
	}
	return cmd
}

func newServiceInstall(a *app, f *serviceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install and start the service",
		Long: "Writes the file of the service and starts the service. The file has the absolute paths of this tenon\n" +
			"and of the configuration (--config, or the file of the folder), which you have to trust first.\n" +
			"Installing again replaces the file and starts the service again. Files that tenon did not write\n" +
			"stay as they are.\n\n" +
			"A service of a user has the PATH of this command. Its variables come from ~/.config/tenon/environment\n" +
			"(lines NAME=value). With --system, the configuration is " + systemConfig + " unless --config names\n" +
			"another, the store is in /var/lib/tenon, and the service runs without any privilege.\n\n" +
			"--credential has systemd read a secret and show it to the service only. In tenon.yaml it is the\n" +
			"secret {file: \"${CREDENTIALS_DIRECTORY}/NAME\"}.\n\n" +
			"With --socket, systemd listens on the address of serve.listen and starts tenon at the first\n" +
			"connection. Schedules and background runs wait until then.",
		Example: "  tenon service install --dry-run\n  tenon service install -c ~/agents/tenon.yaml\n" +
			"  sudo tenon service install --system --credential openai=/etc/tenon/openai.key\n" +
			"  tenon service install --manager windows >tenon.xml",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serviceInstall(cmd.Context(), f) },
	}
	cmd.Flags().StringArrayVar(&f.credentials, "credential", nil, "`NAME=FILE` of a secret for the service (systemd); "+
		"may be repeated")
	cmd.Flags().BoolVar(&f.socket, "socket", false, "have systemd listen, and start tenon at the first connection")
	return cmd
}

func newServiceUninstall(a *app, f *serviceFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove its file",
		Long: "Stops the service and removes the file that tenon service install wrote. The configuration, the\n" +
			"store and logs stay.",
		Example: "  tenon service uninstall\n  tenon service uninstall --dry-run",
		Args:    args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serviceUninstall(cmd.Context(), f) },
	}
}

func newServiceAct(a *app, f *serviceFlags, verb, short string,
	commands func(service.Manager, *service.Spec) [][]string, long string) *cobra.Command {
	return &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  tenon service " + verb + "\n  sudo tenon service " + verb + " --system",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, s, err := a.service(f)
			if err != nil {
				return err
			}
			list := commands(m, s)
			if f.dryRun {
				return a.showService(m, s, serviceChange{Commands: list})
			}
			if err := textOnly(m, list); err != nil {
				return err
			}
			if err := installed(m, s); err != nil {
				return err
			}
			if err := a.manage(cmd.Context(), list); err != nil {
				return err
			}
			return a.did(serviceChange{Name: s.Name, Manager: m.Name, File: m.File(s), Commands: list, Done: true},
				"%s: %s done", s.Name, verb)
		},
	}
}

func newServiceStatus(a *app, f *serviceFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the service is installed and runs",
		Long: "Shows whether the service is installed, starts by itself and runs. The exit status is 0 if it runs,\n" +
			"otherwise 1.",
		Example: "  tenon service status\n  tenon service status --system -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, s, err := a.service(f)
			if err != nil {
				return err
			}
			return a.serviceStatus(cmd.Context(), m, s)
		},
	}
}

func newServiceLogs(a *app, f *serviceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Print the log of the service",
		Long: "Prints the last lines of the service's log: the journal of systemd, or the file of launchd in\n" +
			"~/Library/Logs. The system keeps and rotates both.",
		Example: "  tenon service logs\n  tenon service logs -f",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, s, err := a.service(f)
			switch {
			case err != nil:
				return err
			case f.lines < 0 || f.lines > maxLogLines:
				return usage(cmd, "--lines must be 0 to %d", maxLogLines)
			}
			if err := installed(m, s); err != nil {
				return err
			}
			return a.stream(cmd.Context(), m.Logs(s, f.lines, f.follow))
		},
	}
	cmd.Flags().IntVarP(&f.lines, "lines", "n", 100, "`NUMBER` of lines")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "print new lines as they are written")
	return cmd
}

// maxLogLines bounds --lines.
const maxLogLines = 1_000_000

// service returns the manager and the service that the flags name, without its configuration.
func (a *app) service(f *serviceFlags) (service.Manager, *service.Spec, error) {
	name := cmp.Or(f.manager, runtime.GOOS)
	m, ok := service.Find(name)
	if !ok {
		return m, nil, tenon.Errorf(tenon.CodeInvalid, "%s has no service manager that tenon knows; --manager names "+
			"one: %s", name, strings.Join(service.Names(), ", "))
	}
	home, err := os.UserHomeDir()
	if (err != nil || !filepath.IsAbs(home)) && !f.system {
		return m, nil, tenon.Errorf(tenon.CodeInvalid, "the home folder is not known: set HOME")
	}
	s := &service.Spec{Name: f.name, System: f.system, UserHome: home, UserConfig: filepath.Join(home, ".config"),
		UID: os.Getuid()}
	if dir, _ := a.lookupEnv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		s.UserConfig = dir
	}
	for _, c := range f.credentials {
		name, file, ok := strings.Cut(c, "=")
		if !ok || file == "" {
			return m, nil, tenon.Errorf(tenon.CodeInvalid, "--credential '%s' is not NAME=FILE", tenon.Visible(c))
		}
		if file, err = filepath.Abs(file); err != nil {
			return m, nil, tenon.Errorf(tenon.CodeInvalid, "--credential: %w", err)
		}
		s.Credentials = append(s.Credentials, service.Credential{Name: name, File: file})
	}
	if path := m.SocketFile(s); path != "" && m.Check(s) == nil {
		text, err := serviceFile(path)
		if err != nil {
			return m, nil, err
		}
		s.Socket = text != ""
	}
	return m, s, m.Check(s)
}

// configured adds the program and the configuration to a service. A named file is used without a question of trust, so
// the project of the file has to be trusted here.
func (a *app) configured(ctx context.Context, m service.Manager, s *service.Spec) error {
	if s.System && a.config == "" {
		a.config = systemConfig
	}
	lookup := a.lookupEnv
	defer func() { a.lookupEnv = lookup }()
	a.lookupEnv = s.Variables(lookup, os.ReadFile)
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return err
	}
	if cfg.Path == "" || a.config == "-" {
		return tenon.Errorf(tenon.CodeInvalid, "a service needs a file of configuration: write one with tenon init, "+
			"or name one with --config")
	}
	s.Config, s.Listen = cfg.Path, cfg.Serve.Listen
	if a.home != "" {
		if s.Home, err = filepath.Abs(a.home); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "--home: %w", err)
		}
	}
	s.Path, _ = lookup("PATH")
	if s.Program, err = ownPath(); err != nil {
		return err
	}
	return m.Check(s)
}

// noSession returns what to do if systemd cannot be reached because the user has no session, or "".
func noSession(words []string, said string) string {
	if !slices.Contains(words, "--user") || !strings.Contains(said, "onnect to") || !strings.Contains(said, "bus") {
		return ""
	}
	return "; a service of a user needs a login session of systemd, which su, sudo and containers do not begin: " +
		"log in at the machine or over ssh, or install the service of the machine as root with --system"
}
