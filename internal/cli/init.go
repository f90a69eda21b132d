package cli

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/wholefile"
)

func newInit(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a tenon.yaml that works without changes",
		Long: "Writes tenon.yaml into this folder, or to the file of -c, with one server that is built into\n" +
			"tenon and comments on further settings. A model is enabled if the environment has its key.\n" +
			"Without --force an existing file is kept.",
		Example: "  tenon init\n  tenon run \"What is the weather in London?\"",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(cmd.Context(), force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}

func (a *app) init(ctx context.Context, force bool) error {
	file := cmp.Or(a.config, "tenon.yaml")
	command, installed := ownCommand()
	hints := config.Hints{Demo: append([]string{command}, "testserver", "--stdio")}
	model, found := host.DetectModel(ctx, a.lookupEnv, true)
	if found {
		hints.Provider, hints.Model, _ = strings.Cut(model, "/")
	}
	if err := a.writeStarter(file, config.Starter(hints), force); err != nil {
		return err
	}
	o := a.configOptions()
	o.File = file
	cfg, err := config.Load(ctx, o)
	if err != nil {
		return err
	}
	v, err := a.judgeTrust(ctx, cfg)
	if err != nil {
		a.note("%s", err) // the file has been written
	} else {
		a.trustWritten(cfg, v)
	}
	if !installed {
		a.note("%s is not in PATH yet, and the file starts its demo server by that name: go install ./cmd/tenon",
			command)
	}
	return a.did(map[string]any{"file": file, "model": model}, "wrote %s; try:\n  tenon run %q\nor tenon chat, or "+
		"tenon serve for the workbench in a browser", file, demoQuestion)
}

// writeStarter writes a new configuration file. With force it replaces an existing file. It replaces a link itself, not
// the target, because a cloned folder may contain the link. Errors: conflict, denied (a parent folder is a link out of
// the working folder), invalid.
func (a *app) writeStarter(file string, data []byte, force bool) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", file, err)
	}
	if err := staysInside(filepath.Dir(path)); err != nil {
		return err
	}
	st, err := os.Lstat(path)
	there := err == nil
	mode := fs.FileMode(0o644)
	switch {
	case there && !force:
		return tenon.Errorf(tenon.CodeConflict, "%s already exists; --force replaces it", file)
	case there && st.Mode().IsRegular():
		mode = st.Mode().Perm()
	case there && st.Mode()&fs.ModeSymlink == 0:
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be replaced: it is not a file", file)
	}
	var before []byte
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() <= maxNote {
		before, _ = os.ReadFile(path) // if it cannot be read, tenon serve does not recognize the change as the owner's
	}
	if there && !st.Mode().IsRegular() {
		if err := os.Remove(path); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "%s cannot be replaced: %w", file, wholefile.Reason(err))
		}
	}
	a.noteOwnEdit(path, before, data)
	if err := wholefile.Write(path, data, mode); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", file, err)
	}
	return nil
}

// staysInside refuses a folder below the working folder if a link on its path leads out.
func staysInside(dir string) error {
	here, err := os.Getwd()
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the working folder: %w", err)
	}
	if real, out := config.LeadsOut(here, filepath.Join(dir, "x")); out {
		return tenon.Errorf(tenon.CodeDenied, "nothing is written into %s: a link leads from there to %s; name that "+
			"folder itself", dir, filepath.Dir(real))
	}
	return nil
}

// ownCommand returns the command that starts this program: its name if PATH has it, otherwise its path. For a binary of
// go run, which is deleted when it ends, it is always the name.
func ownCommand() (command string, installed bool) {
	exe, err := executable()
	if err != nil || strings.Contains(filepath.ToSlash(exe), "/go-build") {
		_, err := exec.LookPath("tenon")
		return "tenon", err == nil
	}
	if found, err := exec.LookPath("tenon"); err == nil && sameFile(found, exe) {
		return "tenon", true
	}
	return exe, true
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
