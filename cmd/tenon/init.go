package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func newInit(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a tenon.yaml that runs as it is, with comments on what else there is",
		Long: "Writes tenon.yaml into this folder (or where -c says) with one server that is built into tenon. A model is\n" +
			"switched on if the environment has its key. An existing file is left alone without --force.",
		Example: "  tenon init\n  tenon run \"What is the weather in London?\"",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.init(cmd.Context(), force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return cmd
}

func (a *app) init(ctx context.Context, force bool) error {
	file := a.config
	if file == "" {
		file = "tenon.yaml"
	}
	command, installed := ownCommand()
	hints := config.Hints{Demo: append([]string{command}, "testserver", "--stdio")}
	model, found := host.DetectModel(ctx, a.lookupEnv, true)
	if found {
		hints.Provider, hints.Model, _ = strings.Cut(model, "/")
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return tenon.Errorf(tenon.CodeConflict, "%s is there already; --force replaces it", file)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", file, err)
	}
	_, err = f.Write(config.Starter(hints))
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s cannot be written: %w", file, err)
	}
	if err := a.agree(ctx, file); err != nil {
		return err
	}
	if !installed {
		a.note("%s is not in PATH yet, and the file starts its demo server by that name: go install ./cmd/tenon", command)
	}
	return a.did(map[string]any{"file": file, "model": model}, "wrote %s; try:\n  tenon run %q", file, demoQuestion)
}

// ownCommand is how a configuration can start this program: by its name where
// PATH has it, else by its path. A binary of go run is gone when it has ended.
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
