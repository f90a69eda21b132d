package policy

// Judge judges with a single layer.
func (r *Rules) Judge(f *Facts) Opinion { return NewLayers(Layer{Rules: r}).Judge(f) }
