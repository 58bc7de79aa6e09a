package report_test

import (
	"fmt"

	"skillmaster/report"
)

// Of 134 tasks both runs win 100, the first alone 5, the second alone 19: the chance of so uneven a split of 24, and how
// much better the second is.
func ExampleMcNemar() {
	low, high := report.Newcombe(100, 5, 19, 10)
	fmt.Printf("p = %.4f, difference %+.1f points [%+.1f, %+.1f]\n", report.McNemar(5, 19), 100*float64(19-5)/134, 100*low, 100*high)
	// Output:
	// p = 0.0066, difference +10.4 points [+3.3, +17.8]
}

func ExampleMeanInterval() {
	mean, low, high := report.MeanInterval([]float64{0.90, 0.92, 0.94})
	fmt.Printf("%.2f [%.2f, %.2f]\n", mean, low, high)
	// Output: 0.92 [0.87, 0.97]
}
