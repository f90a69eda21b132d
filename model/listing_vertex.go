package model

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// listVertex lists the models of Google and Anthropic in Vertex AI's Model Garden that tenon can call there. The garden
// also has models that only predict, embed or draw, and models that need a deployment. The list of a location is not
// limited to the models that the project may use. An account without a right to Anthropic's models gets Google's.
func (c *Client) listVertex(ctx context.Context) ([]Listed, *Failure) {
	list, f := c.listPublisher(ctx, "google", "gemini-")
	if f != nil {
		return nil, f
	}
	claude, f := c.listPublisher(ctx, "anthropic", "claude-")
	if f != nil && f.Status != http.StatusForbidden && f.Status != http.StatusNotFound {
		return nil, f
	}
	return append(list, claude...), nil
}

// listPublisher lists the models of a publisher whose names begin with a family. The route belongs to no project
// (googleapis/go-genai, api_client.go; "Method: models.list" of Vertex AI's REST reference). So a user's own
// credentials need a project that pays for the request, which the header names. The header is sent only after a
// refusal, because service accounts need another permission for it.
func (c *Client) listPublisher(ctx context.Context, publisher, family string) ([]Listed, *Failure) {
	base, _ := c.vertexBase()
	var list []Listed
	x := Exchange{Key: func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }, Body: &Body{}}
	token := ""
	for range maxPages {
		var page struct {
			Models []struct {
				Name    string `json:"name"`
				Version string `json:"versionId"`
			} `json:"publisherModels"`
			Next string `json:"nextPageToken"`
		}
		path := "/v1beta1/publishers/" + publisher + "/models?pageSize=100" + token
		f := c.getWith(ctx, base, path, x, &page)
		if f != nil && f.Status == http.StatusForbidden && x.Header == nil {
			if project := c.payer(ctx); project != "" {
				x.Header = http.Header{"X-Goog-User-Project": {project}}
				f = c.getWith(ctx, base, path, x, &page)
			}
		}
		if f != nil {
			return nil, f
		}
		for _, m := range page.Models {
			id := m.Name[strings.LastIndexByte(m.Name, '/')+1:]
			if !strings.HasPrefix(id, family) {
				continue
			}
			if publisher == "anthropic" && isDate(m.Version) && !strings.Contains(id, "@") {
				id += "@" + m.Version
			}
			list = append(list, Listed{ID: id, Owner: publisher})
		}
		if page.Next == "" {
			break
		}
		token = "&pageToken=" + url.QueryEscape(page.Next)
	}
	return list, nil
}

// payer returns the project of the configuration, the environment or the credentials, or "".
func (c *Client) payer(ctx context.Context) string {
	if c.cfg.Project != "" || c.google == nil {
		return c.cfg.Project
	}
	project, err := c.google.Project(ctx)
	if err != nil {
		return "" // the refusal says more
	}
	return project
}

// isDate reports whether a version is a date such as 20250929. Claude's other versions, such as default, are no part of
// the usual name of a model.
func isDate(version string) bool {
	return len(version) == 8 && strings.Trim(version, "0123456789") == ""
}

// vertexBase returns the address of Vertex AI, or "" for the configured one, and the location.
func (c *Client) vertexBase() (base, location string) {
	location = c.cfg.Region
	if location == "" {
		location = c.cloud().Location()
	}
	if c.cfg.BaseURL == c.provider.BaseURL {
		base = "https://" + vertexHost(location)
	}
	return base, location
}
