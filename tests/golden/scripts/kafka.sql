CREATE TABLE clicks (
  `user` STRING,
  price DECIMAL(10, 2),
  item ROW<id BIGINT, tags ARRAY<STRING>>,
  ts TIMESTAMP_LTZ(3),
  `partition` INT METADATA VIRTUAL,
  written TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  doubled AS price * 2,
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'clicks', 'key.format' = 'json', 'key.fields' = 'user', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);
SELECT `user`, doubled, item, `partition`, written FROM clicks;
SELECT `user`, window_end, SUM(price) AS spent
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY `user`, window_start, window_end;
