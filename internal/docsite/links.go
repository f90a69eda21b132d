package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// repository matches the address of a file of the repository that is not a page: …/blob/REF/FILE.
var repository = regexp.MustCompile(`^https://github\.com/tenonhq/tenon/blob/[^/]+/(.+)$`)

// checkLinks reports broken links in the pages of a folder, and resources of other hosts. A link to a file of the
// repository must name a file in repo. Links to other hosts are not checked.
func checkLinks(folder, repo string, pages []page) error {
	ids := map[string]map[string]bool{}
	for _, p := range pages {
		ids[p.name] = p.ids
	}
	var errs []error
	for _, p := range pages {
		for _, l := range p.links {
			if err := checkLink(folder, repo, p.name, l, ids); err != nil {
				errs = append(errs, fmt.Errorf("%s: the link to %s: %w", p.name, l.to, err))
			}
		}
		markdown := strings.TrimSuffix(p.name, ".html") + ".md"
		errs = append(errs, checkMarkdown(folder, markdown)...)
	}
	return errors.Join(errs...)
}

func checkLink(folder, repo, from string, l link, ids map[string]map[string]bool) error {
	u, err := url.Parse(l.to)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		if l.resource {
			return errors.New("a browser would fetch it from another host")
		}
		if m := repository.FindStringSubmatch(l.to); m != nil {
			file, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(repo, filepath.FromSlash(file))); err != nil {
				return fmt.Errorf("the repository has no %s", file)
			}
		}
		return nil
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(target)))
	if strings.HasPrefix(target, "..") || err != nil || info.IsDir() {
		return errors.New("the site has no such file")
	}
	if u.Fragment != "" && path.Ext(target) == ".html" && !ids[target][u.Fragment] {
		return fmt.Errorf("%s has no heading %q", target, u.Fragment)
	}
	return nil
}

// markdownLink is a link in the Markdown of a page.
var markdownLink = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// checkMarkdown reports links in the Markdown of a page that do not lead to a file of the site.
func checkMarkdown(folder, name string) []error {
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return []error{fmt.Errorf("%s: the site lacks the Markdown of this page", name)}
	}
	var errs []error
	for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], ":") {
			continue
		}
		target := path.Join(path.Dir(name), m[1])
		_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(target)))
		if strings.HasPrefix(target, "..") || err != nil {
			errs = append(errs, fmt.Errorf("%s: the link to %s leads nowhere", name, m[1]))
		}
	}
	return errs
}
