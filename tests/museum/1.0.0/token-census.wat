;; A collector as a component of the world `metric-collector` of lm-bench:collector@1.0.0, written by hand in WebAssembly and
;; printed whole. Never edited: it has to run on every later version of lm-bench. It counts as token-census.c does.
(component
  (type $ty-lm-bench:collector/host@1.0.0 (;0;)
    (instance
      (type (;0;) (enum "debug" "info" "warn" "error"))
      (export (;1;) "level" (type (eq 0)))
      (type (;2;) (func (param "level" 1) (param "text" string)))
      (export (;0;) "log" (func (type 2)))
    )
  )
  (import "lm-bench:collector/host@1.0.0" (instance $lm-bench:collector/host@1.0.0 (;0;) (type $ty-lm-bench:collector/host@1.0.0)))
  (type $ty-lm-bench:collector/math@1.0.0 (;1;)
    (instance
      (type (;0;) (func (param "x" f64) (result f64)))
      (export (;0;) "log" (func (type 0)))
    )
  )
  (import "lm-bench:collector/math@1.0.0" (instance $lm-bench:collector/math@1.0.0 (;1;) (type $ty-lm-bench:collector/math@1.0.0)))
  (type $ty-lm-bench:collector/types@1.0.0 (;2;)
    (instance
      (type (;0;) (list u8))
      (type (;1;) (list u16))
      (type (;2;) (list u32))
      (type (;3;) (list u64))
      (type (;4;) (list s64))
      (type (;5;) (list f32))
      (type (;6;) (list f64))
      (type (;7;) (variant (case "u8s" 0) (case "u16s" 1) (case "u32s" 2) (case "u64s" 3) (case "s64s" 4) (case "f32s" 5) (case "f64s" 6)))
      (export (;8;) "data" (type (eq 7)))
      (type (;9;) (record (field "width" u32) (field "data" 8)))
      (export (;10;) "column" (type (eq 9)))
      (type (;11;) (list 10))
      (type (;12;) (record (field "kind" u16) (field "seq" u64) (field "rows" u32) (field "weight" f64) (field "lost-before" u64) (field "columns" 11)))
      (export (;13;) "batch" (type (eq 12)))
      (type (;14;) (variant (case "all") (case "every-nth" u32)))
      (export (;15;) "sampling" (type (eq 14)))
      (type (;16;) (list string))
      (type (;17;) (record (field "kind" string) (field "columns" 16) (field "optional" 16) (field "sampling" 15)))
      (export (;18;) "want" (type (eq 17)))
      (type (;19;) (list 18))
      (type (;20;) (record (field "wants" 19) (field "max-rows" u32)))
      (export (;21;) "subscription" (type (eq 20)))
      (type (;22;) (enum "u8" "u16" "u32" "u64" "i64" "f32" "f64" "sym"))
      (export (;23;) "element" (type (eq 22)))
      (type (;24;) (record (field "name" string) (field "element" 23) (field "list" bool) (field "unit" string) (field "nonfinite" bool)))
      (export (;25;) "resolved-column" (type (eq 24)))
      (type (;26;) (list 25))
      (type (;27;) (record (field "kind" string) (field "id" u16) (field "columns" 26)))
      (export (;28;) "resolved-kind" (type (eq 27)))
      (type (;29;) (tuple f64 u64))
      (type (;30;) (list 29))
      (type (;31;) (variant (case "counter" u64) (case "gauge" f64) (case "distribution" 30) (case "unavailable" string)))
      (export (;32;) "value" (type (eq 31)))
      (type (;33;) (tuple string string))
      (type (;34;) (list 33))
      (type (;35;) (record (field "name" string) (field "labels" 34) (field "value" 32) (field "samples" u64)))
      (export (;36;) "metric" (type (eq 35)))
      (type (;37;) (enum "config" "data" "contract" "panic"))
      (export (;38;) "fault-code" (type (eq 37)))
      (type (;39;) (record (field "code" 38) (field "message" string)))
      (export (;40;) "fault" (type (eq 39)))
    )
  )
  (import "lm-bench:collector/types@1.0.0" (instance $lm-bench:collector/types@1.0.0 (;2;) (type $ty-lm-bench:collector/types@1.0.0)))
  (core module $main (;0;)
    (type (;0;) (func (param f64) (result f64)))
    (type (;1;) (func (param i32 i32 i32)))
    (type (;2;) (func (param i32 i32 i32 i32) (result i32)))
    (type (;3;) (func (param i32 i32 i32 i32 i32 i32) (result i32)))
    (type (;4;) (func (param i32 i64 i32 f64 i64 i32 i32) (result i32)))
    (type (;5;) (func (param i32 i64) (result i32)))
    (type (;6;) (func (result i32)))
    (import "lm-bench:collector/math@1.0.0" "log" (func $log (;0;) (type 0)))
    (import "lm-bench:collector/host@1.0.0" "log" (func $say (;1;) (type 1)))
    (memory (;0;) 2)
    (global $next (;0;) (mut i32) i32.const 4096)
    (global $rows (;1;) (mut i64) i64.const 0)
    (global $tokens (;2;) (mut i64) i64.const 0)
    (global $even (;3;) (mut i64) i64.const 0)
    (export "memory" (memory 0))
    (export "cabi_realloc" (func 2))
    (export "lm-bench:collector/collector@1.0.0#subscribe" (func 4))
    (export "lm-bench:collector/collector@1.0.0#open" (func 5))
    (export "lm-bench:collector/collector@1.0.0#on-batch" (func 6))
    (export "lm-bench:collector/collector@1.0.0#lost-after" (func 7))
    (export "lm-bench:collector/collector@1.0.0#checkpoint" (func 9))
    (export "lm-bench:collector/collector@1.0.0#finish" (func 10))
    (func (;2;) (type 2) (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32)
      global.get $next
      i32.const 15
      i32.add
      i32.const -16
      i32.and
      local.set $at
      local.get $at
      local.get $size
      i32.add
      global.set $next
      global.get $next
      i32.const 131072
      i32.gt_u
      if ;; label = @1
        unreachable
      end
      local.get $at
    )
    (func $text (;3;) (type 1) (param $at i32) (param $ptr i32) (param $len i32)
      local.get $at
      local.get $ptr
      i32.store
      local.get $at
      local.get $len
      i32.store offset=4
    )
    (func (;4;) (type 2) (param i32 i32 i32 i32) (result i32)
      i32.const 1000
      i32.const 708
      i32.const 5
      call $text
      i32.const 1008
      i32.const 716
      i32.const 15
      call $text
      i32.const 1040
      i32.const 700
      i32.const 5
      call $text
      i32.const 1048
      i32.const 1000
      i32.const 2
      call $text
      i32.const 1104
      i32.const 1040
      i32.const 1
      call $text
      i32.const 1112
      i32.const 32
      i32.store
      i32.const 1100
    )
    (func (;5;) (type 3) (param i32 i32 i32 i32 i32 i32) (result i32)
      i32.const 1
      i32.const 824
      i32.const 17
      call $say
      i32.const 1200
    )
    (func (;6;) (type 4) (param $kind i32) (param $seq i64) (param $n i32) (param $weight f64) (param $lost i64) (param $columns i32) (param $len i32) (result i32)
      (local $index i32) (local $count i32) (local $end i32)
      local.get $columns
      i32.load8_u offset=4
      i32.const 2
      i32.ne
      local.get $columns
      i32.load8_u offset=20
      i32.const 2
      i32.ne
      i32.or
      if ;; label = @1
        unreachable
      end
      local.get $columns
      i32.load offset=8
      local.set $index
      local.get $columns
      i32.load offset=24
      local.set $count
      local.get $index
      local.get $n
      i32.const 4
      i32.mul
      i32.add
      local.set $end
      block $done
        loop $again
          local.get $index
          local.get $end
          i32.eq
          br_if $done
          global.get $rows
          i64.const 1
          i64.add
          global.set $rows
          global.get $tokens
          local.get $count
          i64.load32_u
          i64.add
          global.set $tokens
          global.get $even
          local.get $index
          i32.load
          i32.const 1
          i32.and
          i32.eqz
          i64.extend_i32_u
          i64.add
          global.set $even
          local.get $index
          i32.const 4
          i32.add
          local.set $index
          local.get $count
          i32.const 4
          i32.add
          local.set $count
          br $again
        end
      end
      i32.const 4096
      global.set $next
      i32.const 1200
    )
    (func (;7;) (type 5) (param i32 i64) (result i32)
      i32.const 1200
    )
    (func $report (;8;) (type 6) (result i32)
      (local $odd i64)
      global.get $rows
      global.get $even
      i64.sub
      local.set $odd
      i32.const 2000
      i32.const 740
      i32.const 4
      call $text
      i32.const 2024
      global.get $rows
      i64.store
      i32.const 2032
      global.get $rows
      i64.store
      i32.const 1300
      i32.const 788
      i32.const 2
      call $text
      i32.const 1308
      i32.const 792
      i32.const 3
      call $text
      i32.const 2040
      i32.const 748
      i32.const 6
      call $text
      i32.const 2048
      i32.const 1300
      i32.const 1
      call $text
      i32.const 2064
      global.get $tokens
      i64.store
      i32.const 2072
      global.get $tokens
      i64.store
      i32.const 2080
      i32.const 756
      i32.const 10
      call $text
      i32.const 2096
      i32.const 1
      i32.store8
      i32.const 2104
      global.get $tokens
      f64.convert_i64_u
      call $log
      f64.store
      i32.const 2112
      global.get $rows
      i64.store
      i32.const 1336
      global.get $even
      i64.store
      i32.const 1344
      f64.const 0x1p+0 (;=1;)
      f64.store
      i32.const 1352
      local.get $odd
      i64.store
      i32.const 2120
      i32.const 768
      i32.const 7
      call $text
      i32.const 2136
      i32.const 2
      i32.store8
      i32.const 2144
      i32.const 1328
      i32.const 2
      call $text
      i32.const 2152
      global.get $rows
      i64.store
      i32.const 2160
      i32.const 776
      i32.const 11
      call $text
      i32.const 2176
      i32.const 3
      i32.store8
      i32.const 2184
      i32.const 800
      i32.const 21
      call $text
      i32.const 1220
      i32.const 2000
      i32.const 5
      call $text
      i32.const 1216
    )
    (func (;9;) (type 6) (result i32)
      call $report
    )
    (func (;10;) (type 6) (result i32)
      call $report
    )
    (data (;0;) (i32.const 700) "token")
    (data (;1;) (i32.const 708) "index")
    (data (;2;) (i32.const 716) "tokens_in_chunk")
    (data (;3;) (i32.const 740) "rows")
    (data (;4;) (i32.const 748) "tokens")
    (data (;5;) (i32.const 756) "tokens_log")
    (data (;6;) (i32.const 768) "indices")
    (data (;7;) (i32.const 776) "engine_time")
    (data (;8;) (i32.const 788) "of")
    (data (;9;) (i32.const 792) "all")
    (data (;10;) (i32.const 800) "a museum has no clock")
    (data (;11;) (i32.const 824) "the census begins")
    (@custom "lmb:manifest" (after data) "{\22schema\22:1,\22id\22:\22token-census\22,\22version\22:\221.0.0\22,\22about\22:\22Counts tokens\22,\22license\22:\22MIT\22,\22sdk\22:\221.0.0\22,\22requires\22:[\22lmb.collector/1\22],\22metrics\22:[{\22name\22:\22rows\22,\22unit\22:\221\22,\22kind\22:\22counter\22,\22direction\22:\22neither\22,\22formula\22:\22\22,\22about\22:\22\22,\22labels\22:[]},{\22name\22:\22tokens\22,\22unit\22:\221\22,\22kind\22:\22counter\22,\22direction\22:\22neither\22,\22formula\22:\22\22,\22about\22:\22\22,\22labels\22:[\22of\22]},{\22name\22:\22tokens_log\22,\22unit\22:\221\22,\22kind\22:\22gauge\22,\22direction\22:\22neither\22,\22formula\22:\22\22,\22about\22:\22\22,\22labels\22:[]},{\22name\22:\22indices\22,\22unit\22:\221\22,\22kind\22:\22distribution\22,\22direction\22:\22neither\22,\22formula\22:\22\22,\22about\22:\22\22,\22labels\22:[]},{\22name\22:\22engine_time\22,\22unit\22:\221\22,\22kind\22:\22gauge\22,\22direction\22:\22neither\22,\22formula\22:\22\22,\22about\22:\22\22,\22labels\22:[]}]}")
    (@producers
      (processed-by "wit-component" "0.254.2")
    )
  )
  (core module $wit-component-shim-module (;1;)
    (type (;0;) (func (param i32 i32 i32)))
    (table (;0;) 1 1 funcref)
    (export "0" (func 0))
    (export "$imports" (table 0))
    (func (;0;) (type 0) (param i32 i32 i32)
      local.get 0
      local.get 1
      local.get 2
      i32.const 0
      call_indirect (type 0)
    )
    (@producers
      (processed-by "wit-component" "0.254.2")
    )
  )
  (core module $wit-component-fixup (;2;)
    (type (;0;) (func (param i32 i32 i32)))
    (import "" "0" (func (;0;) (type 0)))
    (import "" "$imports" (table (;0;) 1 1 funcref))
    (elem (;0;) (i32.const 0) func 0)
    (@producers
      (processed-by "wit-component" "0.254.2")
    )
  )
  (core instance $wit-component-shim-instance (;0;) (instantiate $wit-component-shim-module))
  (alias export $lm-bench:collector/types@1.0.0 "batch" (type $batch (;3;)))
  (alias export $lm-bench:collector/types@1.0.0 "subscription" (type $subscription (;4;)))
  (alias export $lm-bench:collector/types@1.0.0 "resolved-kind" (type $resolved-kind (;5;)))
  (alias export $lm-bench:collector/types@1.0.0 "metric" (type $metric (;6;)))
  (alias export $lm-bench:collector/types@1.0.0 "fault" (type $fault (;7;)))
  (alias export $lm-bench:collector/math@1.0.0 "log" (func $log (;0;)))
  (core func $log (;0;) (canon lower (func $log)))
  (core instance $lm-bench:collector/math@1.0.0 (;1;)
    (export "log" (func $log))
  )
  (alias core export $wit-component-shim-instance "0" (core func $indirect-lm-bench:collector/host@1.0.0-log (;1;)))
  (core instance $lm-bench:collector/host@1.0.0 (;2;)
    (export "log" (func $indirect-lm-bench:collector/host@1.0.0-log))
  )
  (core instance $main (;3;) (instantiate $main
      (with "lm-bench:collector/math@1.0.0" (instance $lm-bench:collector/math@1.0.0))
      (with "lm-bench:collector/host@1.0.0" (instance $lm-bench:collector/host@1.0.0))
    )
  )
  (alias core export $main "memory" (core memory $memory (;0;)))
  (alias core export $wit-component-shim-instance "$imports" (core table $"shim table" (;0;)))
  (alias export $lm-bench:collector/host@1.0.0 "log" (func $"#func1 log" (@name "log") (;1;)))
  (alias core export $main "cabi_realloc" (core func $realloc (;2;)))
  (core func $"#core-func3 indirect-lm-bench:collector/host@1.0.0-log" (@name "indirect-lm-bench:collector/host@1.0.0-log") (;3;) (canon lower (func $"#func1 log") (memory $memory) string-encoding=utf8))
  (core instance $fixup-args (;4;)
    (export "$imports" (table $"shim table"))
    (export "0" (func $"#core-func3 indirect-lm-bench:collector/host@1.0.0-log"))
  )
  (core instance $fixup (;5;) (instantiate $wit-component-fixup
      (with "" (instance $fixup-args))
    )
  )
  (type (;8;) (result $subscription (error $fault)))
  (type (;9;) (func (param "config" string) (param "run" string) (result 8)))
  (alias core export $main "lm-bench:collector/collector@1.0.0#subscribe" (core func $lm-bench:collector/collector@1.0.0#subscribe (;4;)))
  (func $subscribe (;2;) (type 9) (canon lift (core func $lm-bench:collector/collector@1.0.0#subscribe) (memory $memory) (realloc $realloc) string-encoding=utf8))
  (type (;10;) (list $resolved-kind))
  (type (;11;) (result (error $fault)))
  (type (;12;) (func (param "config" string) (param "run" string) (param "resolved" 10) (result 11)))
  (alias core export $main "lm-bench:collector/collector@1.0.0#open" (core func $lm-bench:collector/collector@1.0.0#open (;5;)))
  (func $open (;3;) (type 12) (canon lift (core func $lm-bench:collector/collector@1.0.0#open) (memory $memory) (realloc $realloc) string-encoding=utf8))
  (type (;13;) (func (param "batch" $batch) (result 11)))
  (alias core export $main "lm-bench:collector/collector@1.0.0#on-batch" (core func $lm-bench:collector/collector@1.0.0#on-batch (;6;)))
  (func $on-batch (;4;) (type 13) (canon lift (core func $lm-bench:collector/collector@1.0.0#on-batch) (memory $memory) (realloc $realloc) string-encoding=utf8))
  (type (;14;) (func (param "kind" u16) (param "rows" u64) (result 11)))
  (alias core export $main "lm-bench:collector/collector@1.0.0#lost-after" (core func $lm-bench:collector/collector@1.0.0#lost-after (;7;)))
  (func $lost-after (;5;) (type 14) (canon lift (core func $lm-bench:collector/collector@1.0.0#lost-after) (memory $memory) string-encoding=utf8))
  (type (;15;) (list $metric))
  (type (;16;) (result 15 (error $fault)))
  (type (;17;) (func (result 16)))
  (alias core export $main "lm-bench:collector/collector@1.0.0#checkpoint" (core func $lm-bench:collector/collector@1.0.0#checkpoint (;8;)))
  (func $checkpoint (;6;) (type 17) (canon lift (core func $lm-bench:collector/collector@1.0.0#checkpoint) (memory $memory) string-encoding=utf8))
  (alias core export $main "lm-bench:collector/collector@1.0.0#finish" (core func $lm-bench:collector/collector@1.0.0#finish (;9;)))
  (func $finish (;7;) (type 17) (canon lift (core func $lm-bench:collector/collector@1.0.0#finish) (memory $memory) string-encoding=utf8))
  (alias export $lm-bench:collector/types@1.0.0 "data" (type $data (;18;)))
  (alias export $lm-bench:collector/types@1.0.0 "column" (type $column (;19;)))
  (alias export $lm-bench:collector/types@1.0.0 "sampling" (type $sampling (;20;)))
  (alias export $lm-bench:collector/types@1.0.0 "want" (type $want (;21;)))
  (alias export $lm-bench:collector/types@1.0.0 "element" (type $element (;22;)))
  (alias export $lm-bench:collector/types@1.0.0 "resolved-column" (type $resolved-column (;23;)))
  (alias export $lm-bench:collector/types@1.0.0 "value" (type $value (;24;)))
  (alias export $lm-bench:collector/types@1.0.0 "fault-code" (type $fault-code (;25;)))
  (component $lm-bench:collector/collector@1.0.0-shim-component (;0;)
    (type (;0;) (list u8))
    (type (;1;) (list u16))
    (type (;2;) (list u32))
    (type (;3;) (list u64))
    (type (;4;) (list s64))
    (type (;5;) (list f32))
    (type (;6;) (list f64))
    (type (;7;) (variant (case "u8s" 0) (case "u16s" 1) (case "u32s" 2) (case "u64s" 3) (case "s64s" 4) (case "f32s" 5) (case "f64s" 6)))
    (import "import-type-data" (type (;8;) (eq 7)))
    (type (;9;) (record (field "width" u32) (field "data" 8)))
    (import "import-type-column" (type (;10;) (eq 9)))
    (type (;11;) (list 10))
    (type (;12;) (record (field "kind" u16) (field "seq" u64) (field "rows" u32) (field "weight" f64) (field "lost-before" u64) (field "columns" 11)))
    (import "import-type-batch" (type (;13;) (eq 12)))
    (type (;14;) (variant (case "all") (case "every-nth" u32)))
    (import "import-type-sampling" (type (;15;) (eq 14)))
    (type (;16;) (list string))
    (type (;17;) (record (field "kind" string) (field "columns" 16) (field "optional" 16) (field "sampling" 15)))
    (import "import-type-want" (type (;18;) (eq 17)))
    (type (;19;) (list 18))
    (type (;20;) (record (field "wants" 19) (field "max-rows" u32)))
    (import "import-type-subscription" (type (;21;) (eq 20)))
    (type (;22;) (enum "u8" "u16" "u32" "u64" "i64" "f32" "f64" "sym"))
    (import "import-type-element" (type (;23;) (eq 22)))
    (type (;24;) (record (field "name" string) (field "element" 23) (field "list" bool) (field "unit" string) (field "nonfinite" bool)))
    (import "import-type-resolved-column" (type (;25;) (eq 24)))
    (type (;26;) (list 25))
    (type (;27;) (record (field "kind" string) (field "id" u16) (field "columns" 26)))
    (import "import-type-resolved-kind" (type (;28;) (eq 27)))
    (type (;29;) (tuple f64 u64))
    (type (;30;) (list 29))
    (type (;31;) (variant (case "counter" u64) (case "gauge" f64) (case "distribution" 30) (case "unavailable" string)))
    (import "import-type-value" (type (;32;) (eq 31)))
    (type (;33;) (tuple string string))
    (type (;34;) (list 33))
    (type (;35;) (record (field "name" string) (field "labels" 34) (field "value" 32) (field "samples" u64)))
    (import "import-type-metric" (type (;36;) (eq 35)))
    (type (;37;) (enum "config" "data" "contract" "panic"))
    (import "import-type-fault-code" (type (;38;) (eq 37)))
    (type (;39;) (record (field "code" 38) (field "message" string)))
    (import "import-type-fault" (type (;40;) (eq 39)))
    (import "import-type-subscription0" (type (;41;) (eq 21)))
    (import "import-type-fault0" (type (;42;) (eq 40)))
    (type (;43;) (result 41 (error 42)))
    (type (;44;) (func (param "config" string) (param "run" string) (result 43)))
    (import "import-func-subscribe" (func (;0;) (type 44)))
    (import "import-type-resolved-kind0" (type (;45;) (eq 28)))
    (type (;46;) (list 45))
    (type (;47;) (result (error 42)))
    (type (;48;) (func (param "config" string) (param "run" string) (param "resolved" 46) (result 47)))
    (import "import-func-open" (func (;1;) (type 48)))
    (import "import-type-batch0" (type (;49;) (eq 13)))
    (type (;50;) (func (param "batch" 49) (result 47)))
    (import "import-func-on-batch" (func (;2;) (type 50)))
    (type (;51;) (func (param "kind" u16) (param "rows" u64) (result 47)))
    (import "import-func-lost-after" (func (;3;) (type 51)))
    (import "import-type-metric0" (type (;52;) (eq 36)))
    (type (;53;) (list 52))
    (type (;54;) (result 53 (error 42)))
    (type (;55;) (func (result 54)))
    (import "import-func-checkpoint" (func (;4;) (type 55)))
    (import "import-func-finish" (func (;5;) (type 55)))
    (export (;56;) "batch" (type 13))
    (export (;57;) "subscription" (type 21))
    (export (;58;) "resolved-kind" (type 28))
    (export (;59;) "metric" (type 36))
    (export (;60;) "fault" (type 40))
    (type (;61;) (result 57 (error 60)))
    (type (;62;) (func (param "config" string) (param "run" string) (result 61)))
    (export (;6;) "subscribe" (func 0) (func (type 62)))
    (type (;63;) (list 58))
    (type (;64;) (result (error 60)))
    (type (;65;) (func (param "config" string) (param "run" string) (param "resolved" 63) (result 64)))
    (export (;7;) "open" (func 1) (func (type 65)))
    (type (;66;) (func (param "batch" 56) (result 64)))
    (export (;8;) "on-batch" (func 2) (func (type 66)))
    (type (;67;) (func (param "kind" u16) (param "rows" u64) (result 64)))
    (export (;9;) "lost-after" (func 3) (func (type 67)))
    (type (;68;) (list 59))
    (type (;69;) (result 68 (error 60)))
    (type (;70;) (func (result 69)))
    (export (;10;) "checkpoint" (func 4) (func (type 70)))
    (export (;11;) "finish" (func 5) (func (type 70)))
  )
  (instance $lm-bench:collector/collector@1.0.0-shim-instance (;3;) (instantiate $lm-bench:collector/collector@1.0.0-shim-component
      (with "import-func-subscribe" (func $subscribe))
      (with "import-func-open" (func $open))
      (with "import-func-on-batch" (func $on-batch))
      (with "import-func-lost-after" (func $lost-after))
      (with "import-func-checkpoint" (func $checkpoint))
      (with "import-func-finish" (func $finish))
      (with "import-type-data" (type $data))
      (with "import-type-column" (type $column))
      (with "import-type-batch" (type $batch))
      (with "import-type-sampling" (type $sampling))
      (with "import-type-want" (type $want))
      (with "import-type-subscription" (type $subscription))
      (with "import-type-element" (type $element))
      (with "import-type-resolved-column" (type $resolved-column))
      (with "import-type-resolved-kind" (type $resolved-kind))
      (with "import-type-value" (type $value))
      (with "import-type-metric" (type $metric))
      (with "import-type-fault-code" (type $fault-code))
      (with "import-type-fault" (type $fault))
      (with "import-type-subscription0" (type $subscription))
      (with "import-type-fault0" (type $fault))
      (with "import-type-resolved-kind0" (type $resolved-kind))
      (with "import-type-batch0" (type $batch))
      (with "import-type-metric0" (type $metric))
    )
  )
  (export $lm-bench:collector/collector@1.0.0 (;4;) "lm-bench:collector/collector@1.0.0" (instance $lm-bench:collector/collector@1.0.0-shim-instance))
  (@producers
    (processed-by "wit-component" "0.254.2")
  )
)
