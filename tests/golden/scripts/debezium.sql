CREATE TEMPORARY TABLE users (id BIGINT, city STRING) WITH ('connector' = 'kafka', 'topic' = 'users', 'format' = 'debezium-json');
CREATE TABLE cities (city STRING PRIMARY KEY NOT ENFORCED, people BIGINT) WITH ('connector' = 'jdbc', 'table-name' = 'cities');
INSERT INTO cities SELECT city, COUNT(*) FROM users GROUP BY city;
