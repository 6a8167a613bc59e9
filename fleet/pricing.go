package fleet

const secondsPerDay = 24 * 60 * 60

// PriceSheet is the price of a million requests of each kind, in dollars.
type PriceSheet struct {
	List   float64 `json:"list"`
	Head   float64 `json:"head"`
	Get    float64 `json:"get"`
	Put    float64 `json:"put"`
	Delete float64 `json:"delete"`
}

// DefaultPriceSheet is the public list price of a large object store's standard
// class. Local disk costs nothing: use the zero PriceSheet.
func DefaultPriceSheet() PriceSheet {
	return PriceSheet{List: 5, Head: 0.4, Get: 0.4, Put: 5, Delete: 0}
}

// Price of these requests in dollars.
func (p PriceSheet) Price(r Requests) float64 {
	sum := p.List*float64(r.List) + p.Head*float64(r.Head) + p.Get*float64(r.Get) +
		p.Put*float64(r.Put) + p.Delete*float64(r.Delete)
	return sum / 1e6
}

// PricePerDay is what a day costs in dollars when a round that spent these
// requests runs every intervalSecs seconds; 0 when no rounds are scheduled.
func (p PriceSheet) PricePerDay(round Requests, intervalSecs int64) float64 {
	if intervalSecs <= 0 {
		return 0
	}
	return p.Price(round) * secondsPerDay / float64(intervalSecs)
}
