package fleet

// Requests counts storage requests by kind.
type Requests struct {
	List   int64 `json:"list"`
	Head   int64 `json:"head"`
	Get    int64 `json:"get"`
	Put    int64 `json:"put"`
	Delete int64 `json:"delete"`
}

// Add returns the sum; it changes neither.
func (r Requests) Add(o Requests) Requests {
	return Requests{
		List:   r.List + o.List,
		Head:   r.Head + o.Head,
		Get:    r.Get + o.Get,
		Put:    r.Put + o.Put,
		Delete: r.Delete + o.Delete,
	}
}

// Total is the number of requests of every kind.
func (r Requests) Total() int64 { return r.List + r.Head + r.Get + r.Put + r.Delete }
