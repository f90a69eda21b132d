package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// page is an HTML page of the site.
type page struct {
	name     string // path in the site, such as guide/servers.html
	title    string
	sections []section
	ids      map[string]bool
	links    []link
}

// section is the text from one heading to the next. The first section has no id.
type section struct {
	id, heading, text string
}

// link is an address in a page. A resource is an address from which a browser fetches without a click.
type link struct {
	to       string
	resource bool
}

// comments matches the comments of a page. They are removed before the page is read, because XML allows no double
// dashes in comments, and those in documents have some.
var comments = regexp.MustCompile(`(?s)<!--.*?-->`)

// readPages reads all HTML pages of a folder, by name.
func readPages(folder string) ([]page, error) {
	var all []page
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		p, err := readPage(filepath.ToSlash(name), string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, p)
		return nil
	})
	slices.SortFunc(all, func(a, b page) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// resources maps elements to the attribute with the address of a resource.
var resources = map[string]string{"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src",
	"audio": "src", "embed": "src", "object": "data", "use": "href"}

// reader reads one page.
type reader struct {
	page
	article int // depth in the article; 0 outside
	heading int // depth in a heading
	skipped int // depth in the link of a heading to itself
	text    strings.Builder
	name    strings.Builder // text of the current heading
}

func readPage(name, text string) (page, error) {
	d := xml.NewDecoder(strings.NewReader(comments.ReplaceAllString(text, "")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	r := reader{page: page{name: name, ids: map[string]bool{}, sections: []section{{}}}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return page{}, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := r.start(t); err != nil {
				return page{}, err
			}
		case xml.EndElement:
			r.end()
		case xml.CharData:
			switch {
			case r.skipped > 0:
			case r.heading > 0:
				r.name.Write(t)
			case r.article > 0:
				r.text.Write(t)
			}
		}
	}
	r.flush()
	if r.title == "" {
		return page{}, errors.New("the page has no heading of the first level")
	}
	return r.page, nil
}

// attribute returns the value of an attribute, or "".
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (r *reader) start(e xml.StartElement) error {
	name := e.Name.Local
	if id := attribute(e, "id"); id != "" {
		if r.ids[id] {
			return fmt.Errorf("two elements have the id %q", id)
		}
		r.ids[id] = true
	}
	if to := attribute(e, "href"); to != "" && (name == "a" || name == "link") {
		fetched := name == "link" && (attribute(e, "rel") == "stylesheet" || attribute(e, "rel") == "icon")
		r.links = append(r.links, link{to, fetched})
	}
	if to := attribute(e, resources[name]); to != "" {
		r.links = append(r.links, link{to, true})
	}
	if r.article > 0 || name == "article" {
		r.article++
	}
	switch {
	case r.skipped > 0 || attribute(e, "class") == "anchor":
		r.skipped++
	case r.heading > 0:
	case r.article > 0 && (name == "h2" || name == "h3"):
		r.flush()
		r.sections = append(r.sections, section{id: attribute(e, "id")})
	}
	if r.heading > 0 || r.article > 0 && (name == "h1" || name == "h2" || name == "h3") {
		r.heading++
	}
	if r.article > 0 && r.heading == 0 {
		r.text.WriteByte(' ') // separates the words of adjacent cells and items
	}
	return nil
}

func (r *reader) end() {
	if r.article > 0 {
		r.article--
	}
	if r.skipped > 0 {
		r.skipped--
	}
	if r.heading > 0 {
		r.heading--
		if r.heading == 0 {
			r.named(strings.Join(strings.Fields(r.name.String()), " "))
			r.name.Reset()
		}
	}
}

// named stores the text of a heading.
func (r *reader) named(heading string) {
	if r.title == "" {
		r.title = heading
		return
	}
	r.sections[len(r.sections)-1].heading = heading
}

// flush ends the current section.
func (r *reader) flush() {
	r.sections[len(r.sections)-1].text = strings.Join(strings.Fields(r.text.String()), " ")
	r.text.Reset()
}

// missing reports documents of the repository that have no page on the site, and pages without their Markdown.
func (s site) missing(pages []page) error {
	has := map[string]bool{}
	for _, p := range pages {
		has[p.name] = true
	}
	var errs []error
	docs := filepath.Join(s.repo, "docs")
	err := filepath.WalkDir(docs, func(file string, d fs.DirEntry, err error) error {
		if err == nil && file == filepath.Join(docs, "site") {
			return filepath.SkipDir // the folder of the theme
		}
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		name, err := filepath.Rel(docs, file)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(filepath.ToSlash(name), ".md")
		if path.Base(name) == "README" {
			name = path.Join(path.Dir(name), "index")
		}
		if path.Dir(name) == "." {
			name = "project/" + name
		}
		if !has[name+".html"] {
			errs = append(errs, fmt.Errorf("docs/site/hugo.yaml: the site has no page of %s", filepath.ToSlash(file)))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
