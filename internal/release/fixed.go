package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// advisory is a line of packaging/fixed.txt: the first version of a part without a vulnerability.
type advisory struct{ ecosystem, name, fixed, id string }

// readFixed reads packaging/fixed.txt of a checkout.
func readFixed(root string) ([]advisory, error) {
	path := filepath.Join(root, "packaging", "fixed.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []advisory
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 4 || words[0] != "go" && words[0] != "npm" {
			return nil, fmt.Errorf("%s:%d: want go or npm, a name, a version and an advisory", path, i+1)
		}
		list = append(list, advisory{words[0], words[1], words[2], words[3]})
	}
	return list, nil
}

// contained returns what tenon contains, as its bills of materials list it, by ecosystem and name with the version: the
// standard library, the modules that are linked on any platform, and the workbench's packages of npm.
func contained(ctx context.Context, root string) (map[[2]string]string, error) {
	all := map[[2]string]string{{"go", "std"}: strings.TrimPrefix(runtime.Version(), "go")}
	linked, err := modules(ctx, root)
	if err != nil {
		return nil, err
	}
	for _, m := range linked {
		all[[2]string{"go", m.name}] = m.version
	}
	web, err := lockedPackages(filepath.Join(root, "web", "app"))
	if err != nil {
		return nil, err
	}
	for _, p := range web {
		all[[2]string{"npm", p.Name}] = p.Version
	}
	return all, nil
}

// vulnerable returns a message for each part that is older than the list wants, and for each line of the list whose
// part tenon does not contain any more.
func vulnerable(list []advisory, parts map[[2]string]string) (problems []string) {
	for _, a := range list {
		switch version, ok := parts[[2]string{a.ecosystem, a.name}]; {
		case !ok:
			problems = append(problems, a.name+": tenon does not contain it; remove "+a.id+" from packaging/fixed.txt")
		case compareSemver(version, a.fixed) < 0:
			problems = append(problems, a.name+" "+version+" has "+a.id+"; "+a.fixed+" is the first version without it")
		}
	}
	return problems
}

// reportFixed compares what tenon contains with packaging/fixed.txt and says what it compared.
func reportFixed(ctx context.Context, root string, to io.Writer) error {
	list, err := readFixed(root)
	if err != nil {
		return err
	}
	parts, err := contained(ctx, root)
	if err != nil {
		return err
	}
	if problems := vulnerable(list, parts); len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	_, err = fmt.Fprintf(to, "%d parts, %d advisories of packaging/fixed.txt: none is older than its fixed version\n",
		len(parts), len(list))
	return err
}

// compareSemver compares versions by semantic versioning (https://semver.org, clause 11), with or without v. What
// follows a plus sign does not count.
func compareSemver(a, b string) int {
	split := func(v string) (core, pre []string) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
		numbers, rest, _ := strings.Cut(v, "-")
		if rest != "" {
			pre = strings.Split(rest, ".")
		}
		return strings.Split(numbers, "."), pre
	}
	identifiers := func(x, y string) int {
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return cmp.Compare(m, n)
		}
		if (errX == nil) != (errY == nil) { // numbers are lower than words
			return map[bool]int{true: -1, false: 1}[errX == nil]
		}
		return strings.Compare(x, y)
	}
	coreA, preA := split(a)
	coreB, preB := split(b)
	if c := slices.CompareFunc(coreA, coreB, identifiers); c != 0 || len(preA)+len(preB) == 0 {
		return c
	}
	if len(preA) == 0 || len(preB) == 0 { // a release is higher than its pre-releases
		return cmp.Compare(len(preB), len(preA))
	}
	return slices.CompareFunc(preA, preB, identifiers)
}
