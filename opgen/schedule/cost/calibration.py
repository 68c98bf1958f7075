"""All constants of the automatic scheduler, each with its unit, its meaning, and the log entry that measured it.

A docstring begins with the unit and ends with the entry of the log of experiments (`opgen/schedule/EXPERIMENTS.md`) in
brackets; [not recorded] if no entry says how the constant was found.
"""

from __future__ import annotations

# Arithmetic, and its overhead ------------------------------------------------------------------------------
STEPS = 4
"""cycles: minimum latency of a multiply-add; as many are in flight in one unit [not recorded]"""
VISIT = 40
"""multiply-adds: cost of entering and leaving a register tile [not recorded]"""
STORED = 2
"""multiply-adds: cost of storing an accumulator [not recorded]"""
RESUMED = 8
"""multiply-adds: cost of reloading a spilled accumulator and storing it again [not recorded]"""
TRANSPOSED = 2
"""instructions: load and store of a transposed vector, besides the shuffles [not recorded]"""
SHUFFLES = 0.5
"""a multiply-add: shuffles that a core issues in the same time [E127]"""
RAGGED = 1.5
"""factor: cost of a second body for the last tile, in build time and in the instruction cache [not recorded]"""
AWKWARD = 0.01
"""share: margin by which a loop order with a disadvantage that the estimate ignores must be better [not recorded]"""
PANELS_ALIKE = 1.05
"""factor: of the least estimate, up to which a plan with vectors outermost is taken, as their rows can be a panel
[E079]"""
FULL = 0.95
"""share: of busy lanes, from which no other loop is considered for lanes [not recorded]"""
MASKED_BYTES = 64
"""bytes: of a vector, from which a CPU masks lanes for free [not recorded]"""
PRICED_PLACES = 256
"""places: maximum at which a condition is evaluated; in larger maps few taps are outside [not recorded]"""

# Exposed latency: fetching that arithmetic does not hide --------------------------------------------------------
EXPOSED = (0.1, 0.25, 1.0)
"""shares: of the time for fetching into the first, second and third cache that a register tile exposes [not
recorded]"""
READ_TWICE = 2
"""factor: cost of a read of a window's map relative to one of the taps: it may straddle lines, or come from a further
cache [not recorded]"""

# Shares of caches ---------------------------------------------------------------------------------------------------
LINE = 64
"""bytes: unit in which memory is fetched [not recorded]"""
PAGE = 4096
"""bytes: contiguous in physical memory for any virtual address [not recorded]"""
KEPT = 0.75
"""share of a cache: for data that is reused; the rest is for streamed data [not recorded]"""
FOUND = 1 / 2
"""share of a cache: for data that is used together and still a hit later; other data has the rest. [not recorded]"""
ALL = 1
"""share of a cache: data that alone exceeds it is certainly evicted [not recorded]"""
FOUND_SUMS = 1 / 4
"""share of the last cache: as `FOUND`, for contractions and chains, whose inputs and results stream through it
[E109]"""
FAR_READS = 2
"""second caches: size of reads that repeatedly come from beyond the second cache [E114]"""
OWN_SUMS = 4
"""part of the second cache: for accumulators that a thread owns [E111]"""
PANEL_LARGE = 1 / 4
"""share of the second cache: size from which a whole copy evicts the data used with it [not recorded]"""
PANEL_STREAMED = 1 / 16
"""share of the second cache: for the panel of a block of places, on cores with one multiply-add unit [E110]"""
CONFLICT_WAYS = 1 / 2
"""share of a set's lines: available to data that is used together [not recorded]"""
CONFLICTS = 0.25
"""share of lines: evicted by others of their set, from which rows are padded [E058]"""
PADDING = 0.5
"""share of memory: maximum that padding between rows adds [not recorded]"""
PADDED_BY = (1, 2, 3)
"""elements: padding of a dimension; that of the last one is a line [not recorded]"""
CONFLICT_PLACES = 36
"""lines: maximum along one dimension that are used together, as many as a transform has parts [E172]"""

TABLE_SHARE = 1 / 4
"""share of the second cache: maximum size of a table that depends on few loops [E243]"""
TABLE_USES = 16
"""rows: minimum number that read such a table [E243]"""

# Chains of nests through memory -------------------------------------------------------------------------------------
NEST = 2e-6
"""seconds: for threads to start and finish a parallel loop [not recorded]"""
BACK = 2
"""times: that a stored line moves, as it is read before and written back; non-temporal stores avoid this [not
recorded]"""
UNKNOWN = 64
"""iterations: assumed for a loop of unknown extent when plans are priced [not recorded]"""
ENOUGH = 1.5
"""times: the time of the arithmetic alone; a plan within it ends the search for others [E227]"""
MUCH_LESS = 0.85
"""share: of a plan's estimated cost; an override for this plan is ignored if another plan costs less [E240]"""
CANDIDATES = 10
"""plans: number of the cheapest ones for a loop nest that are shown and that a search tries [not recorded]"""
START = 1e-6
"""seconds: to begin a block, whose memory and loops are cold [not recorded]"""
PIECE = 1024
"""bytes: of a piece that is read in order as fast as longer ones [E061]"""
ENDS = 8
"""times: minimum length of a loop relative to the places at a peeled end, so that its other places fill the lanes
[E241]"""
BLOCK_FREE = 0.25
"""share of the second cache: that a block fills without a loss, besides streamed data [E060]"""
MADE = 1.5
"""of memory's rate: maximum at which the last cache reads and writes intermediates; its own rate is for reading in
order [E108]"""
CHAIN_LONGEST = 32
"""nests: maximum scheduled together: facts about each one are looked up in all others [not recorded]"""
CHAIN_BLOCKS = 4
"""blocks for each core: minimum for threads to own accumulators [E111]"""

# Threads ------------------------------------------------------------------------------------------------------------
PARALLEL = 2
"""loops: maximum fused into the parallel one [not recorded]"""
TERMS_UNROLLED = 16
"""terms: maximum unrolled in a sum that is alone in its lanes [E153]"""
ROWS_SHARED = 64
"""rows: minimum for threads to share whole rows instead of vectors [E151]"""
TURNS = 4
"""iterations for each core: balanced enough even if the cores do not divide them [not recorded]"""
PARTS = 16
"""parts: maximum with sums of their own, added up at the end [E091]"""
PLAN_SHARED = 64
"""iterations: of the outermost loops, enough for any number of threads [not recorded]"""
FUSED_SHARED = 256
"""iterations: of fused loops, enough for an even share of any number of threads [not recorded]"""
STEP_SHARED = 2**18
"""terms or results: minimum for threads to share a loop nest despite a barrier at each step of a recurrence [not
recorded]"""

# Register tiles of contractions -------------------------------------------------------------------------------------
OPERANDS = 4
"""registers: reserved for operands, not accumulators [not recorded]"""
POSITIONS = 7
"""positions: of a tile; by two vectors, 14 accumulators hide the latency, and sizes of maps are often multiples of 7
[E003]"""
ACCUMULATORS_ALONG = 16
"""accumulators: of a tile along which scalars are contiguous: a line holds as many of float32 [E031]"""
POSITIONS_NEAR = (0, 1, -1, -2, -3)
"""positions: offsets from `POSITIONS` that may divide a loop, in the order in which they are tried [not recorded]"""
VECTORS_SEARCHED = (1, 2, 3, 4)
"""vectors: of a tile, choices for the tuner [not recorded]"""
POSITIONS_SEARCHED = (4, 6, 7, 8, 12, 14, 16, 28)
"""positions: of a tile, choices for the tuner [not recorded]"""
POSITIONS_SHORT = 4
"""positions: of a row that is too short for a tile of its own [E130]"""
PRODUCT_POSITIONS = 6
"""scalars: of a tile of 24 sums, with 10 loads for 24 multiply-adds [E054]"""
PRODUCT_VECTORS = 4
"""vectors: of that tile [E054]"""
PAIR_BYTES = 4
"""bytes: of two bfloat16, and of their sum [not recorded]"""
MATRIX_LEAST = 4
"""rows, columns, pairs: minimum of a tile for a matrix unit [E080]"""
FEW_SUMS = 3 / 4
"""share of the registers: for the results of a tile along a row of few channels [not recorded]"""
FILLED_BY_POSITIONS = 1.3
"""factor: by which vectors must be fuller for lanes to go along positions [not recorded]"""

# Loops and blocks of contractions -----------------------------------------------------------------------------------
BLOCKS = (4, 7, 8, 14, 16, 32, 64, 128, 256, 512)
"""iterations: block sizes that are tried for a loop [not recorded]"""
PLANS_TRIED = 4
"""plans: tried before the one that needs no estimate [not recorded]"""
UNROLLED = 96
"""accumulations: maximum in one body of unrolled taps [not recorded]"""
UPDATES_UNROLLED = 4
"""updates: unrolled together, at places given by values [E210]"""
UNROLLED_TAPS = 16
"""taps: below this number they are unrolled [not recorded]"""
LOOPS_OF_TERMS = 3
"""loops: over terms, minimum for blocks of the second one to keep data in a cache [E115]"""
PACKED_TERMS = 8
"""terms: minimum of a sum for which packing its operands pays [not recorded]"""
PLACES_WAITING = 64
"""places: minimum of a block; below it, spilling of accumulators is exposed [E084]"""
WHOLE_TILES = 3 / 4
"""share of results: minimum computed by whole tiles [E101]"""

# Copies: minimum number of reads of a copy ----------------------------------------------------------------------
USES = 4
"""reads of each element: minimum that makes up for a copy [not recorded]"""
USES_ANEW = 6
"""tiles: as `USES`, if the panel is made again in each iteration around it [E075]"""
USES_NOT_SUMMED = 2
"""reads of each element: as `USES`, if nothing is summed [not recorded]"""
USES_OF_PANEL = 128
"""places: that a panel must serve [E054]"""
USES_OF_FAR_PANEL = 32
"""places: that a panel must serve if the second cache does not hold its rows [E214]"""
TILES_OF_PANEL = 8
"""tiles of scalars: that a panel must serve [E084]"""
WORTH_MAPS = 6
"""factor: of the copies' time, the minimum time of the arithmetic for maps to be transposed [E093]"""
SMALLEST_SQUARE = 4
"""elements: the edge of the smallest square block that is transposed in registers [not recorded]"""
PANEL_OVERLAP = 5 / 4
"""factor: maximum that panels copy in all, relative to the input: rows at their borders are in several [E076]"""
NON_TEMPORAL = 5
"""part of the reads: minimum size of results for non-temporal stores [E125]"""

# Nests without a register tile --------------------------------------------------------------------------------------
REDUCED_AT_ONCE = 2048
"""terms: maximum of a reduction to a number that takes no longer than a call [not recorded]"""
COLUMN_ROWS = 8
"""rows: read in parallel while accumulators are in the first cache [E104]"""
COLUMN_VECTORS = 4
"""vectors: maximum of these rows that are adjacent [E104]"""
COLUMN_SUMS = 5 / 8
"""share of the registers: for adjacent vectors of accumulators [not recorded]"""
COLUMN_LITTLE = 1 / 4
"""share of the second cache: size of reads below which threads do not share parts of the rows [not recorded]"""
TRANSPOSED_EDGE = 64
"""rows: the edge of a larger block, whose lines and pages are kept even at distances of a power of two [E103]"""
TRANSPOSED_TWICE = 1.08
"""factor: maximum of repeated work if larger blocks overlap, relative to smaller ones [E103]"""

# Windows ------------------------------------------------------------------------------------------------------------
RESULTS_CONFLICTING = 8
"""results: maximum if registers are short or lines conflict; half as many with each phase of a stride [E001]"""
TAPS = 25
"""taps: maximum unrolled in two dimensions, and maximum of their sums in registers [not recorded]"""
ROW_SUMS = 12
"""sums: maximum kept in registers besides some rows of operands [E128]"""
LANE_STEP = 2
"""elements: maximum step between the reads of neighbouring lanes [E047]"""
WINDOW_STEP = 4
"""elements: as `LANE_STEP`, for windows whose lanes share nothing [E136]"""
NEIGHBOURS = 16
"""terms: maximum adjacent ones that are added up last [E215]"""
NEIGHBOURS_IN_ROWS = 64
"""terms: as `NEIGHBOURS`, if nothing is transposed and other terms are many [E243]"""
ROWS_OF_NEIGHBOURS = 64
"""terms: minimum number of other ones for these [E243]"""
TERMS_BESIDE_NEIGHBOURS = 4
"""terms: minimum number of other ones of such a sum [E215]"""
WINDOW_GATHERED = 8
"""elements: as `WINDOW_STEP`, if results are contiguous, so that only this loop has full vectors [E136]"""
STRIDES = 8
"""results: the most that read one element, or take turns, and have vectors of their own; elements: the most between
rows of few terms that lanes add up [E244]"""
STREAMS = 10
"""rows: maximum read in parallel from memory [E117]"""
PLACE_LINES = 4
"""lines: of a place of the map, enough for a tile of several columns not to read a row in order [E117]"""
TILES_SEARCHED = 6
"""tiles: number of the best ones among which the tuner may choose [not recorded]"""
ROWS_STREAMED = 2
"""rows: maximum of a tile whose reads and writes stream from memory during the arithmetic [E045]"""
SUM_OPERANDS = 3
"""registers: for the operands of sums of taps [not recorded]"""
SUMS_WAITING = 12
"""sums: maximum spilled to memory so that rows are read in order; 9 pay, 25 do not [E214]"""
SUM_TERMS = 8
"""terms: maximum of a tile; more have no registers besides the sums [E038]"""
TERMS_SHARED = 4
"""terms: number that shares its reads well enough [not recorded]"""

# Unknown sizes -------------------------------------------------------------------------------------------
OPEN_POSITIONS = 8
"""positions: of a tile along which scalars are contiguous; numbers of channels are often multiples of it [not
recorded]"""
OPEN_PHASES = 4
"""positions: of a window's tile, for each phase of a stride [not recorded]"""
OPEN_TAPS = 9
"""taps: of a window; up to this number many are in one body [not recorded]"""
OPEN_TAPS_MOST = 25
"""taps: of a window; up to this number some are in one body [not recorded]"""
OPEN_TILES = ((7, 1), (2, 4), (4, 2))
"""rows and columns: of a window's tile in two dimensions, whose neighbours share most of their reads [not recorded]"""
OPEN_SMALL = 16
"""places: in a row of a map of which a vector's part stays in the first cache [not recorded]"""
OPEN_UNROLLED = 16
"""taps: maximum unrolled to decide phases [not recorded]"""
OPEN_SUMS = 4 / 5
"""share of the registers: for sums by taps [not recorded]"""

# GPUs ---------------------------------------------------------------------------------------------------------------
GPU_THREADS = 256
"""threads: of a block, if the loop along them is long enough [not recorded]"""
GPU_WARP = 32
"""threads: that execute together [not recorded]"""
GPU_FUSED = 3
"""loops: maximum of unknown extent that are fused over the blocks: each makes the indices harder to analyse [not
recorded]"""

GPU_TILED = 1 << 15
"""threads: minimum number for each to have several results [not recorded]"""
GPU_LANES = range(7, 97)
"""threads: along a row that is not a multiple of a warp, for tiles [not recorded]"""
GPU_VECTORS = (4, 2, 1)
"""results of a thread: along the loop of its warp [not recorded]"""
GPU_PLACES = (8, 7, 6, 5, 4, 3, 2, 1)
"""results of a thread: along the other loop [not recorded]"""
GPU_NEARLY = 0.8
"""share: of the best tile's terms for each load that is enough for a tile along an inner loop [not recorded]"""
GPU_TERMS = 200
"""multiplications of a thread: maximum for all of its terms to be unrolled [not recorded]"""
GPU_LONG = 512
"""terms: of a sum, from which a block computes it [not recorded]"""
GPU_PARTS = 16
"""threads: of those that compute a sum, the ones that add up the partial sums [not recorded]"""
GPU_OWNERS = 1 << 14
"""owners: of updates that loops cannot distribute, one a thread [not recorded]"""
GPU_ROW_OWNERS = 64
"""owners: of updates of rows, whose loops have less than GPU_FULL iterations [not recorded]"""
GPU_FULL = 1 << 14
"""threads: that keep a GPU busy [not recorded]"""
GPU_ALONE = 4096
"""terms: maximum of a number that one thread computes before memory for others is allocated [not recorded]"""
GPU_SHARED = (1 << 14, 128)
"""threads: that share a reduction to one number, and those that reduce their partial results [not recorded]"""

# Recurrences --------------------------------------------------------------------------------------------------------
ROWS_AT_ONCE = 8
"""rows: that take short steps together, as many as there are ways in a set of the first cache [E152]"""
STEP_STORES = 2
"""stores: maximum of a short step [E152]"""
SCANNED = 2**12
"""steps: of a block of a running sum, besides its first, so that they are whole vectors [E221]"""
STEP_CORES = 4
"""cores: minimum for threads to share steps, by columns or in blocks, which takes one thread 1.1 to 1.5 times as long
[E221]"""

# Sums over several indices ------------------------------------------------------------------------------------------
SEPARATE = 1.25
"""times as many multiplications: factor from which one index of a sum is summed first, into memory [E160]"""
GATHERED = 4
"""times: cost of a product whose lanes gather an operand, relative to one with contiguous operands [E160]"""
SHORT_STEP = 4
"""elements: maximum stride of lanes if nothing else reads these elements [E161]"""
