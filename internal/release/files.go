package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// completions maps the shells of tenon completion to the names of the files in which they look for completions.
var completions = map[string]string{
	"bash": "tenon.bash", "zsh": "_tenon", "fish": "tenon.fish", "powershell": "tenon.ps1",
}

// writeFiles writes man/*.1.gz, completions/* and NOTICES.txt of the checkout root into the folder to.
func writeFiles(ctx context.Context, root, to string) error {
	bin, err := os.MkdirTemp("", "tenon-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	tenon := filepath.Join(bin, platforms[0].binary())
	build := exec.CommandContext(ctx, "go", "build", "-o", tenon, "./cmd/tenon")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/tenon: %w", err)
	}
	return writeFilesOf(ctx, tenon, root, to)
}

// writeFilesOf is writeFiles with a program that has been built already.
func writeFilesOf(ctx context.Context, tenon, root, to string) error {
	if err := writeMan(ctx, tenon, filepath.Join(to, "man")); err != nil {
		return err
	}
	for shell, name := range completions {
		text, err := output(ctx, "", tenon, "completion", shell)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(to, "completions", name), text); err != nil {
			return err
		}
	}
	text, err := notices(ctx, root)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(to, "NOTICES.txt"), text)
}

// packageTexts returns LICENSE of a checkout, and NOTICES.txt with this text.
func packageTexts(root string, notices []byte) ([]entry, error) {
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	return []entry{{"LICENSE", own, 0o644}, {"NOTICES.txt", notices, 0o644}}, err
}

// writeMan writes the compressed manual pages of tenon and of all verbs. The compressed files contain neither a time
// nor a name.
func writeMan(ctx context.Context, tenon, to string) error {
	for waiting := [][]string{nil}; len(waiting) > 0; waiting = waiting[1:] {
		verb := waiting[0]
		page, err := output(ctx, "", tenon, append([]string{"man"}, verb...)...)
		if err != nil {
			return err
		}
		for _, name := range verbsIn(string(page)) {
			waiting = append(waiting, append(verb[:len(verb):len(verb)], name))
		}
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(page); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		name := strings.Join(append([]string{"tenon"}, verb...), "-") + ".1.gz"
		if err := writeFile(filepath.Join(to, name), packed.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// verbsIn returns the names of verbs in the section VERBS of a manual page.
func verbsIn(page string) []string {
	_, list, _ := strings.Cut(page, "\n.SH VERBS\n")
	list, _, _ = strings.Cut(list, "\n.SH ")
	var names []string
	lines := strings.Split(list, "\n")
	for i, l := range lines {
		if name, ok := strings.CutPrefix(l, ".B "); ok && i > 0 && lines[i-1] == ".TP" {
			names = append(names, strings.ReplaceAll(name, `\-`, "-"))
		}
	}
	return names
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, &problems)
	}
	return text, nil
}

func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
