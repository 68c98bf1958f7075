"""Every constant that the automatic scheduler goes by: its unit, what it is, and the entry of the log that measured it.

A docstring begins with the unit and ends with the entry of the log of experiments (`opgen/schedule/EXPERIMENTS.md`) in
brackets; [not recorded] where no entry tells how the constant was found.
"""

from __future__ import annotations

# Arithmetic, and what stands around it ------------------------------------------------------------------------------
STEPS = 4
"""cycles: of a multiply-add at least; so many are under way in one unit [not recorded]"""
VISIT = 40
"""multiply-adds: entering and leaving a register tile [not recorded]"""
STORED = 2
"""multiply-adds: storing an accumulator [not recorded]"""
RESUMED = 8
"""multiply-adds: loading an accumulator that waited in memory, and storing it again [not recorded]"""
TRANSPOSED = 2
"""instructions: of a vector that is transposed, beside the shuffles: its load and its store [not recorded]"""
SHUFFLES = 0.5
"""a multiply-add: shuffles that a core begins meanwhile [E127]"""
RAGGED = 1.5
"""factor: what a second body for the last tile costs, in time to build and in the cache of instructions [not
recorded]"""
AWKWARD = 0.01
"""share: by which a nest must be better that is awkward for something the estimate does not know [not recorded]"""
PANELS_ALIKE = 1.05
"""factor: of the least estimate, within which a plan with vectors outermost is taken, as their rows can be a panel
[E079]"""
FULL = 0.95
"""share: of lanes at work, from which no other loop suits lanes better [not recorded]"""
MASKED_BYTES = 64
"""bytes: of a vector, from which on a CPU masks its lanes for nothing [not recorded]"""
PRICED_PLACES = 256
"""places: the most at which a condition is tried; in larger maps few taps lie outside [not recorded]"""

# Exposed latency: of fetching, what arithmetic does not hide --------------------------------------------------------
EXPOSED = (0.1, 0.25, 1.0)
"""shares: of the time for fetching into the first, second and third cache, what a register tile exposes [not
recorded]"""
READ_TWICE = 2
"""factor: a read of a window's map beside one of the taps: it may straddle lines, or come from a further cache [not
recorded]"""

# Shares of caches ---------------------------------------------------------------------------------------------------
LINE = 64
"""bytes: that memory is fetched in [not recorded]"""
PAGE = 4096
"""bytes: that lie together in memory whatever their addresses [not recorded]"""
KEPT = 0.75
"""share of a cache: what is read again finds its place there; the rest is for what passes through [not recorded]"""
FOUND = 1 / 2
"""share of a cache: all that is used together, if it is found there again; other things have the rest. [not
recorded]"""
ALL = 1
"""share of a cache: what alone is larger is certainly not found there again [not recorded]"""
FOUND_SUMS = 1 / 4
"""share of the last cache: as `FOUND`, of contractions and chains, whose inputs and results pass through it [E109]"""
FAR_READS = 2
"""second caches: of reads that come from afar again and again [E114]"""
OWN_SUMS = 4
"""part of the second cache: for sums of a thread's own [E111]"""
PANEL_LARGE = 1 / 4
"""share of the second cache: from which a copy as a whole pushes out of it what is used with it [not recorded]"""
PANEL_STREAMED = 1 / 16
"""share of the second cache: for the panel of a block of places, where one unit multiplies and adds [E110]"""
CONFLICT_WAYS = 1 / 2
"""share of a set's lines: that what is used together finds room for [not recorded]"""
CONFLICTS = 0.25
"""share of lines: that others of their set evict, from which room is made between rows [E058]"""
PADDING = 0.5
"""share of memory: the most that room between rows adds [not recorded]"""
PADDED_BY = (1, 2, 3)
"""elements: by which a dimension may be made longer; the last one by a line [not recorded]"""
CONFLICT_PLACES = 36
"""lines: the most along one dimension that are used together, as many as a transform has parts [E172]"""

TABLE_SHARE = 1 / 4
"""share of the second cache: the most for a table of what few loops determine [E243]"""
TABLE_USES = 16
"""rows: that read such a table, at least [E243]"""

# Chains of nests through memory -------------------------------------------------------------------------------------
NEST = 2e-6
"""seconds: threads begin and end something together [not recorded]"""
BACK = 2
"""times: a line that is stored to moves, as it is read before and written back, but by non-temporal stores [not
recorded]"""
UNKNOWN = 64
"""iterations: that are assumed of a loop whose extent is not known, where plans are priced [not recorded]"""
ENOUGH = 1.5
"""times: that the arithmetic alone takes; a plan that takes no longer ends the search for others [E227]"""
MUCH_LESS = 0.85
"""share: of a plan's estimated cost; one that is put before others does not count where another takes less [E240]"""
CANDIDATES = 10
"""plans: of one nest, the cheapest, that are shown and that a search tries [not recorded]"""
START = 1e-6
"""seconds: to begin a block, whose memory and loops are cold [not recorded]"""
PIECE = 1024
"""bytes: read in order as fast as longer pieces [E061]"""
ENDS = 8
"""times: as long as the places at an end that is set apart a loop is at least, so that its others have full lanes
[E241]"""
BLOCK_FREE = 0.25
"""share of the second cache: that a block fills without a loss, beside what passes through [E060]"""
MADE = 1.5
"""of memory's rate: the most that the last cache takes and gives of intermediates; its own rate is of reading in order
[E108]"""
CHAIN_LONGEST = 32
"""nests: the most that are scheduled together: what is found out about one is looked for in all others [not
recorded]"""
CHAIN_BLOCKS = 4
"""blocks for each core: the fewest for which threads have sums of their own [E111]"""

# Threads ------------------------------------------------------------------------------------------------------------
PARALLEL = 2
"""loops: the most that are fused into the parallel one [not recorded]"""
TERMS_UNROLLED = 16
"""terms: of a sum in lanes that is nothing else, the most that are written out [E153]"""
ROWS_SHARED = 64
"""rows: so many or more are shared among threads whole, rather than vector by vector [E151]"""
TURNS = 4
"""iterations for each core: shared evenly enough, if their number is no multiple of that of the cores [not recorded]"""
PARTS = 16
"""parts: the most that have sums of their own, added up at the end [E091]"""
PLAN_SHARED = 64
"""iterations: of the outermost loops, that any number of threads can share [not recorded]"""
FUSED_SHARED = 256
"""iterations: of fused loops, that any number of threads can share evenly [not recorded]"""
STEP_SHARED = 2**18
"""terms or results: from which threads share a nest though they meet at each step of a recurrence [not recorded]"""

# Register tiles of contractions -------------------------------------------------------------------------------------
OPERANDS = 4
"""registers: not for accumulators [not recorded]"""
POSITIONS = 7
"""positions: of a tile; by two vectors, 14 accumulators hide the latency, and sizes of maps are often multiples of 7
[E003]"""
ACCUMULATORS_ALONG = 16
"""accumulators: of a tile whose scalars lie along it: a line holds as many of float32 [E031]"""
POSITIONS_NEAR = (0, 1, -1, -2, -3)
"""positions: by which `POSITIONS` may differ to divide a loop, in the order in which they are tried [not recorded]"""
VECTORS_SEARCHED = (1, 2, 3, 4)
"""vectors: of a tile, among which the tuner may choose [not recorded]"""
POSITIONS_SEARCHED = (4, 6, 7, 8, 12, 14, 16, 28)
"""positions: of a tile, among which the tuner may choose [not recorded]"""
POSITIONS_SHORT = 4
"""positions: of a row that is too short for a tile of its own [E130]"""
PRODUCT_POSITIONS = 6
"""scalars: of a tile of 24 sums, with 10 loads for as many multiply-adds [E054]"""
PRODUCT_VECTORS = 4
"""vectors: of that tile [E054]"""
PAIR_BYTES = 4
"""bytes: of two bfloat16, and of their sum [not recorded]"""
MATRIX_LEAST = 4
"""rows, columns, pairs: the fewest of a tile for a matrix unit [E080]"""
FEW_SUMS = 3 / 4
"""share of the registers: for the results of a tile along a row of few channels [not recorded]"""
FILLED_BY_POSITIONS = 1.3
"""factor: how much fuller vectors must be for lanes to go along positions [not recorded]"""

# Loops and blocks of contractions -----------------------------------------------------------------------------------
BLOCKS = (4, 7, 8, 14, 16, 32, 64, 128, 256, 512)
"""iterations: sizes tried for blocks of a loop [not recorded]"""
PLANS_TRIED = 4
"""plans: tried before the one that needs no estimate [not recorded]"""
UNROLLED = 96
"""accumulations: the most that unrolled taps put in one body [not recorded]"""
UPDATES_UNROLLED = 4
"""updates: at places that values tell, at once [E210]"""
UNROLLED_TAPS = 16
"""taps: fewer are unrolled [not recorded]"""
LOOPS_OF_TERMS = 3
"""loops: of terms, for blocks of the second to keep anything [E115]"""
PACKED_TERMS = 8
"""terms: the fewest of a sum for which it pays to pack what is read [not recorded]"""
PLACES_WAITING = 64
"""places: the fewest of a block, or results that wait are exposed [E084]"""
WHOLE_TILES = 3 / 4
"""share of results: that whole tiles must make [E101]"""

# Copies: how often what is copied must be read ----------------------------------------------------------------------
USES = 4
"""reads of each element: that make up for a copy [not recorded]"""
USES_ANEW = 6
"""tiles: as `USES`, where the panel is made again in another iteration around it [E075]"""
USES_NOT_SUMMED = 2
"""reads of each element: as `USES`, where nothing is summed up [not recorded]"""
USES_OF_PANEL = 128
"""places: that a panel must serve [E054]"""
USES_OF_FAR_PANEL = 32
"""places: that a panel must serve, of rows that the second cache does not hold [E214]"""
TILES_OF_PANEL = 8
"""tiles of scalars: that a panel must serve [E084]"""
WORTH_MAPS = 6
"""factor: of the copies' time, that the arithmetic must take where maps are transposed [E093]"""
SMALLEST_SQUARE = 4
"""elements: the edge of the smallest square block that is transposed in registers [not recorded]"""
PANEL_OVERLAP = 5 / 4
"""factor: the most that panels copy together, of what there is: rows at their borders are in several [E076]"""
NON_TEMPORAL = 5
"""part of the reads: results that are as much, or more, are stored non-temporally [E125]"""

# Nests without a register tile --------------------------------------------------------------------------------------
REDUCED_AT_ONCE = 2048
"""terms: up to which a number is reduced as fast as a call takes [not recorded]"""
COLUMN_ROWS = 8
"""rows: read side by side where sums wait in the first cache [E104]"""
COLUMN_VECTORS = 4
"""vectors: the most of these rows that are side by side [E104]"""
COLUMN_SUMS = 5 / 8
"""share of the registers: for vectors of sums that lie side by side [not recorded]"""
COLUMN_LITTLE = 1 / 4
"""share of the second cache: of less that is read threads share no parts of the rows [not recorded]"""
TRANSPOSED_EDGE = 64
"""rows: the edge of a larger block, whose lines and pages are kept even if they lie a power of two apart [E103]"""
TRANSPOSED_TWICE = 1.08
"""factor: what may be done twice where larger blocks overlap, of what smaller ones do [E103]"""

# Windows ------------------------------------------------------------------------------------------------------------
RESULTS_CONFLICTING = 8
"""results: the most where registers are short or lines conflict, half as many with each phase of a stride [E001]"""
TAPS = 25
"""taps: the most that are unrolled in two dimensions, and sums by them in registers [not recorded]"""
ROW_SUMS = 12
"""sums: the most that stay in registers beside some rows of what is summed [E128]"""
LANE_STEP = 2
"""elements: the largest step between what neighbouring lanes read [E047]"""
WINDOW_STEP = 4
"""elements: as `LANE_STEP`, of windows that share nothing among lanes [E136]"""
NEIGHBOURS = 16
"""terms: the most side by side that are added up last [E215]"""
NEIGHBOURS_IN_ROWS = 64
"""terms: as `NEIGHBOURS`, where nothing is transposed and other terms are many [E243]"""
ROWS_OF_NEIGHBOURS = 64
"""terms: the fewest other ones for these [E243]"""
TERMS_BESIDE_NEIGHBOURS = 4
"""terms: the fewest other ones of such a sum [E215]"""
WINDOW_GATHERED = 8
"""elements: as `WINDOW_STEP`, where results lie side by side, so that nothing else has full vectors [E136]"""
STRIDES = 8
"""results: the most that read one element, or take turns, and have vectors of their own; elements: the most between
rows of few terms that lanes add up [E244]"""
STREAMS = 10
"""rows: the most that are read side by side from memory [E117]"""
PLACE_LINES = 4
"""lines: of a place of the map, enough for a tile of several columns not to read a row in order [E117]"""
TILES_SEARCHED = 6
"""tiles: the best, among which the tuner may choose [not recorded]"""
ROWS_STREAMED = 2
"""rows: the most of a tile where what is read and written streams from afar, and is loaded meanwhile [E045]"""
SUM_OPERANDS = 3
"""registers: for what sums of taps read [not recorded]"""
SUMS_WAITING = 12
"""sums: the most that wait in memory, so that rows are read in order; 9 pay, 25 do not [E214]"""
SUM_TERMS = 8
"""terms: the most of a tile; more have no registers beside the sums [E038]"""
TERMS_SHARED = 4
"""terms: so many share what they read well enough [not recorded]"""

# Sizes that are not known -------------------------------------------------------------------------------------------
OPEN_POSITIONS = 8
"""positions: of a tile that lie side by side; numbers of channels are often multiples of it [not recorded]"""
OPEN_PHASES = 4
"""positions: of a window's tile, for each phase of a stride [not recorded]"""
OPEN_TAPS = 9
"""taps: of a window of which many are done in one body [not recorded]"""
OPEN_TAPS_MOST = 25
"""taps: of a window of which some are done in one body [not recorded]"""
OPEN_TILES = ((7, 1), (2, 4), (4, 2))
"""rows and columns: of a window's tile in two dimensions, whose neighbours share most of what they read [not
recorded]"""
OPEN_SMALL = 16
"""places: in a row of a map of which one vector's part stays in the first cache [not recorded]"""
OPEN_UNROLLED = 16
"""taps: the most that are unrolled so that phases are decided [not recorded]"""
OPEN_SUMS = 4 / 5
"""share of the registers: for sums by taps [not recorded]"""

# GPUs ---------------------------------------------------------------------------------------------------------------
GPU_THREADS = 256
"""threads: of a block, where the loop along them is long enough [not recorded]"""
GPU_WARP = 32
"""threads: that run together [not recorded]"""
GPU_FUSED = 3
"""loops: the most of unknown extent that are fused over the blocks: each makes the indices harder to reason about [not
recorded]"""

GPU_TILED = 1 << 15
"""threads: that there must be for each to have several results [not recorded]"""
GPU_LANES = range(7, 97)
"""threads: along a row that is no multiple of a warp, for tiles [not recorded]"""
GPU_VECTORS = (4, 2, 1)
"""results of a thread: along which its warp runs [not recorded]"""
GPU_PLACES = (8, 7, 6, 5, 4, 3, 2, 1)
"""results of a thread: across them [not recorded]"""
GPU_NEARLY = 0.8
"""share: of the best tile's terms for each load that one along a loop further in may have [not recorded]"""
GPU_TERMS = 200
"""multiplications of a thread: up to which all of its terms are code of their own [not recorded]"""
GPU_LONG = 512
"""terms: of a sum from which on a block makes it [not recorded]"""
GPU_PARTS = 16
"""threads: of those that make a sum the ones that add up what all made [not recorded]"""
GPU_OWNERS = 1 << 14
"""owners: of updates that no loop shares out, one a thread [not recorded]"""
GPU_ROW_OWNERS = 64
"""owners: of updates of rows, whose loops have less than GPU_FULL iterations [not recorded]"""
GPU_FULL = 1 << 14
"""threads: that keep a GPU busy [not recorded]"""
GPU_ALONE = 4096
"""terms: up to which one thread makes a number of them sooner than memory for others is had [not recorded]"""
GPU_SHARED = (1 << 14, 128)
"""threads: that share a reduction to one number, and what these made [not recorded]"""

# Recurrences --------------------------------------------------------------------------------------------------------
ROWS_AT_ONCE = 8
"""rows: that go through short steps together, as many as there are ways in a set of the first cache [E152]"""
STEP_STORES = 2
"""stores: of a short step, the most [E152]"""
SCANNED = 2**12
"""steps: of a block of a running sum, after its first, so that they are whole vectors [E221]"""
STEP_CORES = 4
"""cores: from which on threads share steps, by columns or in blocks, which takes one thread 1.1 to 1.5 times as long
[E221]"""

# Sums over several indices ------------------------------------------------------------------------------------------
SEPARATE = 1.25
"""times as many multiplications: from which one index of a sum is summed first, into memory [E160]"""
GATHERED = 4
"""times: what a product in lanes takes that gather an operand, of one whose operands lie consecutively [E160]"""
SHORT_STEP = 4
"""elements: that lanes may read apart where nothing else reads them [E161]"""
