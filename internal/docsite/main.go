// Command docsite builds the documentation site: make docs-site.
//
//	docsite -hugo PROGRAM [-version NAME] [-url URL] FOLDER
//	docsite -list FOLDER
//
// Hugo makes the pages of one version from docs/ and README.md with the theme in docs/site, and writes them into
// FOLDER/NAME. docsite then checks them, adds the index of the search, and lists the versions in FOLDER:
//
//	FOLDER/index.html           leads to the newest version
//	FOLDER/versions.js          the versions and their pages, for the menu of every version
//	FOLDER/NAME/…               the site of a version: HTML, Markdown, llms.txt, sitemap.xml, search.js
//
// -list only lists the versions: archives of releases that were unpacked into one folder become one site.
//
// A site with a link that leads nowhere, without a page of a document, or with a resource of another host is not
// written: the version in FOLDER stays what it was.
//
// The program is no part of the product. It uses the standard library only, and reads the pages that Hugo wrote as XML,
// which the templates of docs/site keep well-formed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

// site is a site to build.
type site struct {
	hugo    string // the program
	repo    string // the repository's folder
	version string // the folder's name, such as v1.2.3
	url     string // address of the published site
	folder  string
}

// devVersion is the version of a site that was not built from a release.
const devVersion = "dev"

// versionName matches valid names of versions. The name is used as a folder and in addresses.
var versionName = regexp.MustCompile(`^(dev|v\d{1,5}\.\d{1,5}\.\d{1,5}(-[0-9A-Za-z.-]{1,40})?)$`)

func run(ctx context.Context, args []string) error {
	s := site{repo: "."}
	f := flag.NewFlagSet("docsite", flag.ContinueOnError)
	f.StringVar(&s.hugo, "hugo", "hugo", "the program Hugo")
	f.StringVar(&s.version, "version", devVersion, "the version of the pages")
	f.StringVar(&s.url, "url", "http://localhost:8421/", "where the site is published; ends with a slash")
	list := f.Bool("list", false, "list the versions that are in the folder, and build none")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("want one folder")
	}
	if *list {
		return writeVersions(f.Arg(0))
	}
	if !versionName.MatchString(s.version) {
		return fmt.Errorf("-version %q: want dev or a version such as v1.2.3", s.version)
	}
	s.folder = f.Arg(0)
	return s.build(ctx)
}

// build builds the site of one version in a temporary folder, checks it, and moves it to its final place.
func (s site) build(ctx context.Context) error {
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(s.folder, ".docsite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := s.render(ctx, made); err != nil {
		return err
	}
	pages, err := readPages(made)
	if err != nil {
		return err
	}
	if err := errors.Join(s.missing(pages), checkLinks(made, s.repo, pages)); err != nil {
		return err
	}
	if err := writeIndex(filepath.Join(made, "search.js"), pages); err != nil {
		return err
	}
	if err := os.Chmod(made, 0o755); err != nil { // temporary folders are private
		return err
	}
	place := filepath.Join(s.folder, s.version)
	if err := errors.Join(os.RemoveAll(place), os.Rename(made, place)); err != nil {
		return err
	}
	fmt.Printf("%s: %d pages\n", place, len(pages))
	return writeVersions(s.folder)
}

// render runs Hugo. Hugo's cache is placed in a temporary folder, because the default is a folder in the repository.
func (s site) render(ctx context.Context, to string) error {
	abs, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "docsite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	cmd := exec.CommandContext(ctx, s.hugo, "build", "--source", filepath.Join(s.repo, "docs", "site"),
		"--destination", abs, "--cacheDir", cache, "--noBuildLock", "--panicOnWarning", "--logLevel", "warn", "--quiet")
	cmd.Env = append(os.Environ(), "HUGO_PARAMS_VERSION="+s.version, "HUGO_PARAMS_URL="+s.url+s.version+"/")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.hugo, err, out)
	}
	return nil
}
