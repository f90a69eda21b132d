// Command release makes a release: make release-dry-run.
//
//	release all VERSION FOLDER                       everything, of the commit at hand and for all platforms
//	release here VERSION FOLDER [GOOS_GOARCH...]     the same for this platform and more
//
// The parts, for trying one of them:
//
//	release files FOLDER                     manual pages, completions, notices of licences
//	release npm VERSION DIST FOLDER          packages of npm, one for each platform and one that selects it
//	release wheels VERSION DIST FOLDER       wheels of PyPI, one for each platform
//	release mcp VERSION DIST FOLDER          bundles for MCP clients (.mcpb), server.json of MCP's registry
//	release image VERSION DIST FOLDER        images of Linux as an OCI layout
//	release sbom VERSION DIST FOLDER         bills of materials in CycloneDX
//	release fixed                            compares what is linked with packaging/fixed.txt
//
// files runs tenon, whose help is the source of all pages, and asks the Go toolchain which modules are linked. The
// others put the binaries in DIST (DIST/GOOS_GOARCH/tenon) into packages that download nothing when they are installed.
// Before the verb, -nfpm PROGRAM names the program that makes packages of Linux distributions; without it there are
// none. -hugo PROGRAM builds the documentation site; without it there is none. -sign PROGRAM signs and notarizes each
// binary of macOS: packaging/scripts/notarize.sh.
//
// All outputs are functions of their inputs: entries of archives are sorted, and their time is SOURCE_DATE_EPOCH or,
// without it, 1980-01-01. TestReproducible builds everything twice and compares the bytes.
//
// The program is no part of the product. It uses the standard library only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	made, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	nfpm := flags.String("nfpm", "", "program that makes packages of Linux distributions")
	hugo := flags.String("hugo", "", "program that builds the documentation site")
	sign := flags.String("sign", "", "program that signs and notarizes a binary of macOS")
	if err := flags.Parse(args); err != nil {
		return err
	}
	args = flags.Args()
	writers := map[string]func(packaging) error{"npm": writeNPM, "wheels": writeWheels, "mcp": writeMCP,
		"sbom": writeSBOM, "image": writeImage}
	switch {
	case len(args) == 2 && args[0] == "files":
		return writeFiles(ctx, ".", args[1])
	case len(args) == 1 && args[0] == "fixed":
		return reportFixed(ctx, ".", os.Stdout)
	case len(args) >= 3 && args[0] == "here":
		some, err := somePlatforms(args[3:])
		if err != nil {
			return err
		}
		return build{".", args[1], args[2], *nfpm, *hugo, *sign, some}.write(ctx)
	case len(args) == 3 && args[0] == "all":
		return build{".", args[1], args[2], *nfpm, *hugo, *sign, platforms}.write(ctx)
	case len(args) == 4 && writers[args[0]] != nil:
		p := packaging{version: args[1], dist: args[2], to: args[3], made: made}
		text, err := notices(ctx, ".")
		if err != nil {
			return err
		}
		if p.licences, err = packageTexts(".", text); err != nil {
			return err
		}
		return writers[args[0]](p)
	}
	return errors.New("want: fixed, files FOLDER, here or all with VERSION FOLDER, or npm, wheels, mcp, image or " +
		"sbom with VERSION DIST FOLDER")
}

// sourceDate returns the time of all files in archives (https://reproducible-builds.org/specs/source-date-epoch/). A
// zip file knows no time before 1980.
func sourceDate(text string) (time.Time, error) {
	first := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	if text == "" {
		return first, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return first, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a count of seconds", text)
	}
	if t := time.Unix(seconds, 0).UTC(); t.After(first) {
		return t, nil
	}
	return first, nil
}

// platform is a system and a processor that releases are made for.
type platform struct{ os, arch string }

// platforms are the systems and processors of a release.
var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// somePlatforms returns this platform, and the platforms with the names GOOS_GOARCH.
func somePlatforms(names []string) ([]platform, error) {
	some := []platform{here()}
	for _, name := range names {
		at := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("there are no releases for %q", name)
		}
		if !slices.Contains(some, platforms[at]) {
			some = append(some, platforms[at])
		}
	}
	return some, nil
}

// here returns the platform of this machine.
func here() platform { return platform{runtime.GOOS, runtime.GOARCH} }

func (p platform) binary() string {
	if p.os == "windows" {
		return "tenon.exe"
	}
	return "tenon"
}

func (p platform) String() string { return p.os + "_" + p.arch }

var _ fmt.Stringer = platform{}
